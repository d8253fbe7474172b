"""Check the arguments of public functions against their annotations, with a one-line message for a
wrong type."""

from __future__ import annotations

import functools
import inspect
import numbers
import os
import reprlib
import sys
import types
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from codesyntax_dataset.errors import ArgumentError

Positive = Annotated[int, 1]
"""A whole number of at least 1."""

Natural = Annotated[int, 0]
"""A whole number of at least 0."""

StrPath = str | os.PathLike
"""The path of a file or folder."""

Paths = Sequence[StrPath]

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def checked(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Decorator: raise ArgumentError for an argument that does not match its annotation.

    Supported annotations are classes, `Any`, `Positive`, `Natural`, sequences of these, and unions.
    Torch takes seconds to import, so a module may import it for type checking alone.
    """
    signature = inspect.signature(function)

    @functools.cache
    def resolved(torch: Any) -> dict[str, Any]:
        # at the first call: by then all names are defined
        return get_type_hints(function, localns={"torch": torch}, include_extras=True)

    def kinds() -> dict[str, Any]:
        return resolved(sys.modules.get("torch", _UNIMPORTED_TORCH))

    @functools.wraps(function)
    def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Returned:
        for name, value in signature.bind(*arguments, **named).arguments.items():
            if not _fits(value, kinds().get(name, Any)):
                raise ArgumentError(f"{name} is {_shown(value)}, expected {_named(kinds()[name])}")
        return function(*arguments, **named)

    return call


class _Unimported:
    """A library that was not imported yet: nothing is of its types."""

    def __init__(self, name: str):
        self.name = name

    def __getattr__(self, type_name: str) -> type:
        return type(type_name, (), {"__module__": self.name})


_UNIMPORTED_TORCH = _Unimported("torch")


def _fits(value: Any, kind: Any) -> bool:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, item) for item in inner)
    if origin is Annotated:
        whole, least = inner
        return _fits(value, whole) and value >= least
    if origin is Sequence:
        return (
            isinstance(value, Sequence)
            and not isinstance(value, (str, bytes))
            and all(_fits(item, *inner) for item in value)
        )
    if kind is int:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return isinstance(value, origin or kind)


def _named(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        *others, last = dict.fromkeys(map(_named, inner))
        return f"{', '.join(others)} or {last}" if others else last
    if origin is Annotated:
        return f"a whole number of at least {inner[1]}"
    if origin is Sequence:
        return f"a list in which every item is {_named(inner[0])}"
    words = {
        int: "a whole number",
        str: "text",
        bool: "True or False",
        os.PathLike: "a path",
        type(None): "None",
    }
    return words.get(
        origin or kind
    ) or f"a {kind.__module__.partition('.')[0]} {kind.__name__}".replace("builtins ", "")


def _shown(value: Any) -> str:
    if value is None or isinstance(value, (str, bytes, bool, numbers.Number)):
        return reprlib.repr(value)
    return f"of the type {type(value).__name__}"
