"""Records: what stands in files of others, as strict models, and in one line why a file does not
hold one.

Their JSON has limits of size and depth, and no duplicate keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from codesyntax_dataset import safe_files
from codesyntax_dataset.errors import CodeSyntaxError, SubmissionError

PLAIN = "[ -;=?-~]"
"""A pattern for one printable ASCII character except < and >."""

JsonObject = dict[str, Any]
"""An object of JSON: the values of its fields, by name."""

_MOST_FIELDS = 10_000


class Record(BaseModel):
    """Exactly these fields, each of exactly its type; numbers are finite."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class FieldsByName(Record):
    """A record whose fields are also found by their names, as in JSON: `cell["score"]`,
    `{**cell}`."""

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def keys(self) -> list[str]:
        return list(type(self).model_fields)


Count = Annotated[int, Field(ge=1)]
"""A count of at least one."""

listed = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
"""A tuple is a list in JSON."""

Number = Annotated[int, Field(ge=0, le=2**53)]
"""A count, possibly 0, that a float can hold."""

Numbers = dict[str, Number]
"""Counts by name, such as those of reasons."""

Texts = Annotated[tuple[str, ...], listed]


def matching(pattern: str, expected: str) -> AfterValidator:
    """A text that, as a whole, matches a pattern of ASCII."""
    compiled = re.compile(pattern, re.ASCII)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(expected)
        return value

    return AfterValidator(check)


def exactly(names: Iterable[str]) -> BeforeValidator:
    """An object with these fields and no other."""
    names = tuple(names)

    def check(value: Any) -> Any:
        if isinstance(value, dict):
            for name in names:
                if name not in value:
                    raise ValueError("missing", name)  # as `explain` takes it
            for name in value:
                if name not in names:
                    raise ValueError("extra_forbidden", name)
        return value

    return BeforeValidator(check)


def explain(error: ValidationError, what: str) -> str:
    """The first thing that is wrong with `what`: where it stands, what came, and what was
    expected."""
    first = error.errors(include_url=False)[0]
    kind = first["type"]
    context = first.get("ctx", {})
    raised = context.get("error")
    if isinstance(raised, CodeSyntaxError):  # of a check of several fields, which says all
        return str(raised)
    steps = [str(step) for step in first["loc"]]
    # of `exactly`, which does not stand in the field
    if raised is not None and len(raised.args) == 2:
        kind, name = raised.args
        steps.append(name)
    path = [step if re.fullmatch(_STEP, step, re.ASCII) else shown(step) for step in steps]
    inside = ".".join(path[:-1]) or what
    if kind == "missing":
        return f"{inside} lacks the field {steps[-1]}"
    if kind == "extra_forbidden":
        return f"{inside} has an unknown field {shown(steps[-1])}"
    where = ".".join(path) or what
    if steps[-1:] == ["[key]"]:
        where = f"a name in {'.'.join(path[:-2]) or what}"
    usual = first["msg"].removeprefix("Input should be ")
    expected = raised or _EXPECTED.get(kind, usual).format(**context)
    return f"{where} is {shown(first['input'])}, expected {expected}"


_STEP = r"[\w.:<>\[\]-]{1,60}"

# where pydantic speaks of its models and tuples, not of what stands in JSON
_EXPECTED = {
    "int_type": "a whole number",
    "model_type": "an object",
    "too_long": "at most {max_length} entries",
    "tuple_type": "a list",
}


def read(path: Path, most: int) -> bytes:
    """The first bytes of a regular file, at most one more than `most`."""
    try:
        if path.is_symlink() or path.is_dir():
            raise OSError("this is a link or a folder, expected a regular file")
        with safe_files.opened(path) as file:
            return file.read(most + 1)
    except (OSError, ValueError) as error:
        raise SubmissionError(f"the file cannot be read: {error}") from error


def parse(data: bytes, most: int) -> Any:
    """Parse a JSON value of at most `most` bytes."""
    if len(data) > most:
        raise SubmissionError(f"the file is larger than {most:,} bytes")
    try:
        return json.loads(
            data.decode("utf-8"), object_pairs_hook=_no_duplicates, parse_constant=_no_constant
        )
    except SubmissionError:
        raise
    except RecursionError as error:
        raise SubmissionError("the JSON is nested too deeply") from error
    except ValueError as error:
        raise SubmissionError(f"the file is not JSON in UTF-8: {error}") from error


def _no_duplicates(pairs: list[tuple[str, Any]]) -> JsonObject:
    if len(pairs) > _MOST_FIELDS:  # each unknown one is looked at when the fields are checked
        raise SubmissionError(
            f"an object has {len(pairs):,} fields, expected at most {_MOST_FIELDS:,}"
        )
    fields = {}
    for name, value in pairs:
        if name in fields:
            raise SubmissionError(f"the field {shown(name)} occurs twice")
        fields[name] = value
    return fields


def _no_constant(name: str) -> None:
    raise SubmissionError(f"{name} is not a number in JSON")


def shown(value: Any) -> str:
    """A value for messages: short, and in ASCII."""
    text = (
        ascii(value) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
    )
    return text if len(text) <= 80 else f"{text[:77]}..."
