"""Tables, figures and pages made from results. The package is called to write a report:
`probing.report(...)`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class _CallableRoom(ModuleType):
    """`probing.report` names this package and the function in it."""

    def __call__(self, *arguments: Any, **options: Any) -> Path:
        from probing.report.report import report

        return report(*arguments, **options)


sys.modules[__name__].__class__ = _CallableRoom
