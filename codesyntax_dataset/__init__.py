"""CodeSyntax, the dataset: the syntactic relations between the tokens of real functions."""

from codesyntax_dataset.errors import CodeSyntaxError, ParseError
from codesyntax_dataset.languages import CONFIGS, annotate, tokenize
from codesyntax_dataset.schema import Annotation, Edge, SourceFunction, Token

__all__ = [
    "CONFIGS",
    "Annotation",
    "CodeSyntaxError",
    "Edge",
    "ParseError",
    "SourceFunction",
    "Token",
    "__version__",
    "annotate",
    "tokenize",
]


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version

        return version("codesyntax")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
