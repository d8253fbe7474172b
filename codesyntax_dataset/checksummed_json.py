"""Objects of JSON with a digest of themselves: nothing else would contradict a damaged letter or
digit."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from codesyntax_dataset.errors import SubmissionError

_DIGEST = "sha256"


def with_checksum(fields: dict[str, Any]) -> dict[str, Any]:
    """An object with its digest as a further field."""
    return {
        **fields,
        _DIGEST: hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest(),
    }


def without_checksum(value: Any) -> Any:
    """An object without its digest, which older files lack; raises SubmissionError if it is of another
    content."""
    if not isinstance(value, dict) or _DIGEST not in value:
        return value
    fields = {name: part for name, part in value.items() if name != _DIGEST}
    if with_checksum(fields) != value:
        raise SubmissionError("its content was altered: the digest does not match")
    return fields
