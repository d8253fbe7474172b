"""CodeSyntax, the dataset: which tokens of real functions stand in which syntactic relation."""

from codesyntax_dataset.annotators import annotate, tokenize
from codesyntax_dataset.errors import CodeSyntaxError, ParseError
from codesyntax_dataset.schema import CONFIGS, Annotation, Edge, SourceFunction, Token

__all__ = [
    "CONFIGS",
    "Annotation",
    "CodeSyntaxError",
    "Edge",
    "ParseError",
    "SourceFunction",
    "Token",
    "annotate",
    "tokenize",
]
