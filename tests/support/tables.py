"""What tables have, in lines to read: their columns, where cells come from, and which texts there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def described(specs: Mapping[str, Any]) -> list[str]:
    """A line for each table, block and column, and the names of the lines of facts."""
    lines = []
    for name, columns in specs["columns"].items():
        lines += [f"columns {name}", *_columns(columns, "  ")]
    for name, spec in specs["table"].items():
        lines += [" ".join(["table", name, *spec, str(spec.get("filters", ""))]).rstrip()]
        lines += _columns(spec["columns"], "  ")
    lines += [" ".join(["figure", name, *spec]) for name, spec in specs["figure"].items()]
    for name, spec in specs["facts"].items():
        lines += [f"facts {name}", *(f"  {line}" for line in spec)]
    return lines


def _columns(entries: Iterable[Any], indent: str) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, list):
            name, kind, options = [*entry, *("text", {})[len(entry) - 1 :]]
            more = " ".join(f"{key}={value}" for key, value in options.items())
            yield f"{indent}{name!r} {kind} {more}".rstrip()
        else:
            more = " ".join(f"{key}={value}" for key, value in entry.items() if key != "columns")
            yield f"{indent}{more}"
            yield from _columns(entry.get("columns", []), indent + "  ")


if __name__ == "__main__":
    from probing.report.specs import _specs

    print("\n".join(described(_specs())))
