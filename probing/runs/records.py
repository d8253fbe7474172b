"""Records: what stands in files, as strict models, and in one line why a file does not hold one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from probing.runs.untrusted_json import shown


class Record(BaseModel):
    """Exactly these fields, each of exactly its type; numbers are finite."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


Count = Annotated[int, Field(ge=1)]
"""How many there are of something that is there."""

Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)]
"""A list of texts in JSON."""


def exactly(names: Iterable[str]) -> BeforeValidator:
    """An object with these fields and no other."""
    names = tuple(names)

    def check(value: Any) -> Any:
        if isinstance(value, dict):
            for name in names:
                if name not in value:
                    raise PydanticCustomError("missing", "{name}", {"name": name})
            for name in value:
                if name not in names:
                    raise PydanticCustomError("extra_forbidden", "{name}", {"name": name})
        return value

    return BeforeValidator(check)


def explain(error: ValidationError, what: str) -> str:
    """The first thing that is wrong with `what`: where it stands, what came, and what was expected."""
    first = error.errors(include_url=False)[0]
    path, name = [str(step) for step in first["loc"]], first.get("ctx", {}).get("name")
    if first["type"] in ("missing", "extra_forbidden"):
        name = name if name is not None else path.pop()
        problem = f"lacks the field {name}" if first["type"] == "missing" else f"has an unknown field {shown(name)}"
        return f"{'.'.join(path) or what} {problem}"
    expected = _EXPECTED.get(first["type"], first["msg"].removeprefix("Input should be "))
    return f"{'.'.join(path) or what} is {shown(first['input'])}, expected {expected}"


_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "float_type": "a number",
    "int_type": "a whole number",
    "model_type": "an object",
    "string_type": "text",
    "tuple_type": "a list",
}
