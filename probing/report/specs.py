"""Tables, figures and texts by their specs: `specs.toml` says what columns they have, and their
words.

A column of a spec has a name, a kind (of `probing.report.kinds`) and options:

- `of`: what its cells are of a row, an attribute or key, or several with dots between them; by
  default its name;
- `at`: a key that is looked up before that, such as a protocol or a model;
- `group` and `spare`: as of `probing.report.document.Column`.

A block of columns has `use`, the name of columns that several tables share; `when`, a word that
must be true; or `for` and `in`: the columns are repeated for each item of a word, which is looked
up in the row, behind the key `at` of the block if it has one; a word that has items for each such key,
or item of the block around it, stands for those of that one. Texts name words in braces.

A column that no row of a table has is a LookupError.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probing.report import kinds
from probing.report.document import Column, Figure, Table
from probing.report.words import shared_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


@cache
def _specs() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("specs.toml").read_text(encoding="utf-8"))


_MISSING = object()


def table(
    spec: str,
    rows: Iterable[Any],
    name: str = "",
    /,
    *,
    totals: Sequence[Any] = (),
    filed: bool = True,
    **words: Any,
) -> Table:
    """The table of a spec.

    Args:
        spec: its name in `specs.toml`.
        rows: records, or lists of cells.
        name: of its CSV file, by default that of the spec.
        totals: rows under a line.
        filed: as of `Table`.
        words: what its columns and texts name.
    """
    known = _specs()["table"][spec]
    words = {**shared_words(), **words}
    rows = list(rows)
    columns = list(_columns(known["columns"], words))
    records = [row for row in (*rows, *totals) if not isinstance(row, list)]
    for column in columns:
        if records and all(column.of(row, _MISSING) is _MISSING for row in records):  # type: ignore[call-arg]
            raise LookupError(f"no row of the table {spec} has its column {column.full_name}")
    return Table(
        name or spec,
        _text(known.get("title", ""), words),
        columns,
        rows,
        _text(known.get("notes", ""), words),
        filters=words.get("filters", known.get("filters", 0)),
        filed=filed,
        totals=totals,
    )


def figure(spec: str, name: str, draw: Callable[[], MatplotlibFigure], /, **words: Any) -> Figure:
    """The figure of a spec. `name`: of its file, and of the table with its numbers."""
    known = _specs()["figure"][spec]
    words = {**shared_words(), **words}
    return Figure(name, _text(known["title"], words), _text(known["alt"], words), name, draw)


def text(spec: str, /, **words: Any) -> str:
    """The text of a spec."""
    return _text(_specs()["text"][spec], {**shared_words(), **words})


def facts(spec: str, /, **words: Any) -> dict[str, str]:
    """The lines of a spec: name -> text."""
    every = {**shared_words(), **words}
    return {
        _text(name, every): _text(line, every) for name, line in _specs()["facts"][spec].items()
    }


def _text(text: str, words: Mapping[str, Any]) -> str:
    """A text on one line, with its words."""
    return " ".join(text.split()).format_map(words).strip()


def _columns(
    entries: Iterable[Any], words: Mapping[str, Any], group: str = "", items: tuple[str, ...] = ()
) -> Iterator[Column]:
    for entry in entries:
        if isinstance(entry, list):
            yield _column(words, group, items, *entry)
        elif "use" in entry:
            yield from _columns(_specs()["columns"][entry["use"]], words, group, items)
        elif "when" in entry:
            if words[entry["when"]]:
                yield from _columns(entry["columns"], words, group, items)
        else:
            before = (*items, entry["at"]) if "at" in entry else items
            known = words[entry["in"]]
            for item in (
                known[before[-1]] if isinstance(known, Mapping) and before[-1] in known else known
            ):
                more = {**words, entry["for"]: item}
                heading = entry.get("group", group)
                yield from _columns(entry["columns"], more, heading, (*before, item))


def _column(
    words: Mapping[str, Any],
    group: str,
    items: tuple[str, ...],
    name: str,
    kind: str = "text",
    options: Mapping[str, Any] = {},
) -> Column:
    if at := options.get("at"):
        items = (*items, at)
    path = options.get("of", "" if at else name.replace(" ", "_"))
    return Column(
        name.format_map(words),
        getattr(kinds, kind.format_map(words).upper()),
        options.get("group", group).format_map(words),
        options.get("spare", False),
        partial(_value, items, path.split(".") if path else []),
    )


def _value(items: Sequence[str], names: Sequence[str], row: Any, missing: Any = None) -> Any:
    """What stands in a row behind some keys and names: None where nothing does, and `missing` where
    there is no such key."""
    for number, name in enumerate((*items, *names)):
        if row is None or row is missing:
            return row
        if isinstance(row, Mapping):
            row = row.get(name, missing)
        else:
            row = row.get(name) if number < len(items) else getattr(row, name)
    return row
