"""Self-contained HTML pages and their templates, with autoescaping; and the function that a page
shows: code that was given, or a function of a dataset."""

from __future__ import annotations

import hashlib
import html
import json
import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np

from codesyntax_dataset import annotate, safe_files
from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.atomic import write
from codesyntax_dataset.errors import (
    CodeSyntaxError,
    DatasetError,
    LedgerError,
    ModelError,
    ParseError,
    SourceError,
    UnknownName,
)
from codesyntax_dataset.languages import LANGUAGES, Language, in_order, language_of, variant_of
from codesyntax_dataset.safe_files import LARGEST_FILE
from codesyntax_dataset.schema import Edge
from probing.report.words import readable
from probing.runs.data import load_functions, rows


@dataclass(frozen=True)
class Page:
    """A page about one function, as self-contained HTML. `title`: what it is. Notebooks display
    it."""

    title: str
    html: str

    def save(self, path: StrPath) -> Path:
        """Write the page to the file `path`; raises LedgerError if it cannot be written, or is
        another file."""
        check_page(path)
        return write(path, self.html)

    def _repr_html_(self) -> str:
        # a frame keeps the page's styles and script separate from the notebook's
        style = "width: 100%; height: 48rem; border: 0"
        return (
            f'<iframe title="{html.escape(self.title)}" sandbox="allow-scripts" style="{style}" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )


def check_page(path: StrPath) -> None:
    """Raise LedgerError for a file that is there and is not a page of ours, which `save` would
    replace."""
    target = Path(path)
    if not target.is_file() or not target.stat().st_size:
        return
    with safe_files.opened(target) as file:
        ours = b"script-src 'nonce-" in file.read(1000)
    if not ours:
        raise LedgerError(
            f"{target} is not a page that `codesyntax show` wrote, and would be lost: choose another file"
        )


def as_shown(value: Any) -> Any:
    """The texts of any JSON as pages show them."""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, dict):
        return {as_shown(name): as_shown(part) for name, part in value.items()}
    return [as_shown(part) for part in value] if isinstance(value, (list, tuple)) else value


def filled_page(template: jinja2.Template, **context: Any) -> str:
    """The page that a template makes, with a nonce that no text in it can know; the same page has
    the same one."""
    placeholder = secrets.token_hex(16)
    text = readable(template.render(context, nonce=placeholder))
    nonce = hashlib.sha256(text.replace(placeholder, "").encode()).hexdigest()[:32]
    return text.replace(placeholder, nonce)


def page(kind: str, title: str, heading: str, about: str, **drawn: Any) -> Page:
    """The page on one function. `kind`: the attention of a model, labels, or what a model restores;
    `about`: words beside the heading; `drawn`: what the script of the template says that the kind
    draws."""
    template = environment().get_template("function.html.jinja")
    data = {"kind": kind, "heading": heading, "about": about, **drawn}
    return Page(title, filled_page(template, title=title, data=data))


def environment() -> jinja2.Environment:
    """The jinja environment that loads the templates."""
    templates = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.PackageLoader("probing", "report"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.policies["json.dumps_function"] = lambda value, **options: json.dumps(
        as_shown(value), **options
    )
    return templates


def text_environment() -> jinja2.Environment:
    """The same for texts without mark-up, in which templates stand between << and >>, <% and %>."""
    return environment().overlay(
        autoescape=False,
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
    )


# ---------------------------------------------------------------------------------- what pages show


class Shown(NamedTuple):
    """A labelled function: `position`: in the split, 0 for code that was given; `start`, `end`
    (tokens,) are character offsets, end exclusive."""

    name: str
    code: str
    position: int
    start: np.ndarray
    end: np.ndarray
    edges: list[Edge]


def config_for(code: StrPath | None, config: str | None) -> str:
    """The config by which code is read: by default that of the language whose files end as the path
    `code` does, else of Python."""
    languages = LANGUAGES.items() if code is not None and not isinstance(code, str) else ()
    suffix = os.path.splitext(os.fspath(code or ""))[1]
    known = (name for name, language in languages if suffix in language.suffixes)
    return config or next(known, "python")


def shown(code: StrPath | None, id: int | None, data: Any, config: str, split: str) -> Shown:
    """The function that is `code`, as text or the path of a file, or that has an `id` in a split of
    `data`.

    Raises ParseError, with line and column, for code that does not parse; SourceError for a file
    that cannot be read; DatasetError for an unknown id; UnknownName for an unknown config or split;
    CodeSyntaxError for none or both.
    """
    if (code is None) == (id is None):
        raise CodeSyntaxError(
            f"expected either code or the id of a function, got {'none' if code is None else 'both'}"
        )
    return _labelled_code(code, config) if code is not None else _from_data(data, config, split, id)


def relations_of(name: str, edges: Iterable[Edge], wanted: str | None) -> list[str]:
    """The relations of the edges of the function of that name, in alphabetical order.

    Raises CodeSyntaxError if there are none, and UnknownName if the wanted one is not among them.
    """
    relations = {edge.relation for edge in edges}
    if not relations:
        raise CodeSyntaxError(f"{name} has no edges to show: choose another function")
    names = in_order(relations)
    if wanted is not None and wanted not in relations:
        raise UnknownName("relation of this function", wanted, names)
    return names


def check_length(function: Shown, subtokens: int, model: str, longest: int) -> None:
    """Raise ModelError for a function of more sub-tokens than the model is probed with."""
    if subtokens > longest:
        raise ModelError(
            f"{function.name} has {subtokens} sub-tokens, special tokens included, but {model} is probed with at most "
            f"{longest}: choose a shorter function"
        )


def _labelled_code(code: StrPath, config: str) -> Shown:
    language = language_of(config)
    variant = variant_of(config)
    name, file = "the given code", None
    if not isinstance(code, str):
        file = code
        name = os.path.basename(code)
        code = _read_code(Path(code), language)
    try:
        tokens, edges = annotate(code, language.name, variant.name)
    except ParseError as error:
        reason = str(error).partition(": ")[2]
        hint = f"{name} was read as {language.name} code; for one of many functions, build a dataset and give its id"
        if (other := config_for(file, None)) != language.name and file is not None:
            hint = f"{name} was read as {language.name} code: give --config {other}"
        raise ParseError(f"{reason} ({hint})", error.line, error.column) from None
    start, end = np.array([(token.start, token.end) for token in tokens], np.int64).reshape(-1, 2).T
    return Shown(name, code, 0, start, end, edges)


def _read_code(file: Path, language: Language) -> str:
    try:
        return language.text_of(safe_files.read(file, LARGEST_FILE))
    except OSError as error:
        raise SourceError(f"{file}: cannot be read ({error.strerror})") from error
    except (SyntaxError, LookupError, ValueError) as error:
        raise SourceError(
            f"{file} is no text in UTF-8 or the encoding that it declares: {error}"
        ) from error


def _from_data(data: Any, config: str, split: str, id: int | None) -> Shown:
    table, name = load_functions(data, config, split)
    unit = language_of(config).unit
    ids = table["id"].to_pylist()
    if id not in ids:
        known = f"its ids run from {min(ids)} to {max(ids)}" if ids else f"it has no {unit}s"
        raise DatasetError(f"{name}/{config}/{split} has no {unit} with the id {id}: {known}")
    position = ids.index(id)
    ((row,),) = rows(table.slice(position, 1), None)
    start, end = (np.asarray(row[column], np.int64) for column in ("token_start", "token_end"))
    edges = [Edge(**edge) for edge in row["relations"]]
    title = f"{name}/{config}/{split}, {unit} {id}"
    return Shown(title, row["code"], position, start, end, edges)


def lines_of(code: str, start: Sequence[int], end: Sequence[int]) -> list[list[tuple[str, int]]]:
    """The code by line: for each line, its pieces of text with the index of their token, or -1
    between tokens.

    `start`, `end` (tokens,): character offsets, end exclusive. A token that is a line break is
    shown as a sign at the end of its line; a token over several lines has a piece in each.
    """
    lines: list[list[tuple[str, int]]] = [[]]

    def add(text: str, token: int) -> None:
        for number, part in enumerate(text.split("\n")):
            if number:
                lines.append([])
            if part := part.removesuffix("\r"):
                lines[-1].append((part, token))

    position = 0
    for token, (begin, until) in enumerate(zip(start, end)):
        add(code[position:begin], -1)
        text = code[begin:until]
        if text and not text.strip("\r\n"):
            lines[-1].append(("⏎", token))
            add(text, -1)
        else:
            add(text, token)
        position = until
    add(code[position:], -1)
    return lines if lines[-1] else lines[:-1]
