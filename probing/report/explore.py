"""An app that shows what the attention heads of a model find in code that somebody pastes: here, by
`codesyntax explore`, and as a Space. It needs the extra `space`; nothing that is pasted is kept."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codesyntax_dataset.errors import CodeSyntaxError, ModelError
from codesyntax_dataset.languages import LANGUAGES, in_order, language_of
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.instruments.attention.offsets import best_offsets
from probing.instruments.attention.probe import default_direction
from probing.models.load import load
from probing.report.pages import Shown, relations_of, shown
from probing.report.show import attention_page, top_tokens

if TYPE_CHECKING:
    import gradio

    from probing.models.encoder import Encoder

LONGEST_CODE = 8_000
"""Characters of code that the app reads."""

EXAMPLE = """def total(xs):
    result = 0
    for i in range(len(xs)):
        if xs[i] > 0:
            result += xs[i]
    return result
"""

TABLE_COLUMNS = ["relation", "edges", "best head here", "it finds", "an offset finds", "offset"]

HELP = """Paste one function. An attention head *finds* an edge, such as `if` → its condition, if its largest
weight leads from the head token to the dependent. An offset finds the same without a model: it always looks so many
tokens ahead, as many as are most frequent in the sample. Nothing is stored."""


@cache
def _offsets(language: str) -> dict[str, int]:
    """The most frequent offset of each relation in the embedded sample."""
    from codesyntax_dataset.build import build
    from probing.evidence.baselines import read_edges

    with tempfile.TemporaryDirectory() as folder:
        build("sample", [language], Path(folder, "codesyntax"))
        edges = read_edges(Path(folder, "codesyntax"), language, "validation")
    return dict(best_offsets(edges))


def read_code(code: str, config: str) -> Shown:
    """The labelled function in a text; raises CodeSyntaxError for code that is too long or wrong."""
    if len(code) > LONGEST_CODE:
        raise CodeSyntaxError(
            f"the code has {len(code):,} characters, expected at most {LONGEST_CODE:,}: paste one function"
        )
    if not code.strip():
        raise CodeSyntaxError("no code: paste one function")
    function = shown(code, None, None, config, "test")
    relations_of(function.name, function.edges, None)
    return function


def findings_of(encoder: Encoder, function: Shown, config: str) -> list[list[Any]]:
    """A row of COLUMNS for each relation of a function."""
    direction = default_direction(encoder, config)
    listener, readers = top_tokens(encoder, function, config, direction)
    guesses = np.stack(listener.tokens)[..., 0].astype(int)  # (layers, heads, readers)
    offsets = _offsets(language_of(config).name)
    rows = []
    for relation in in_order({edge.relation for edge in function.edges}):
        edges = [edge for edge in function.edges if edge.relation == relation]
        hits = np.zeros(guesses.shape[:2], int)
        for edge in edges:
            reader, wanted = edge.head, edge.first
            if direction != HEAD_TO_DEPENDENT:
                reader, wanted = wanted, reader
            if reader in readers:
                hits += guesses[..., readers.index(reader)] == wanted
        layer, head = np.unravel_index(int(hits.argmax()), hits.shape)
        offset = offsets.get(relation)
        by_offset = sum(edge.first - edge.head == offset for edge in edges)
        best = f"{layer}-{head}" if hits.max() else "–"
        rows.append([relation, len(edges), best, int(hits.max()), by_offset, offset])
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def explained(
    encoder: Encoder, code: str, config: str, relation: str | None
) -> tuple[str, list[list[Any]], str]:
    """What the app shows: a sentence, the rows of the relations, and the picture as HTML. What is
    wrong with the code is the sentence, with nothing else."""
    try:
        function = read_code(code, config)
        rows = findings_of(encoder, function, config)
        names = [row[0] for row in rows]
        page = attention_page(
            encoder, function, config, relation if relation in names else names[0]
        )
    except CodeSyntaxError as error:
        return f"This cannot be shown: {error}", [], ""
    edges, hits, by_offset = (sum(row[column] for row in rows) for column in (1, 3, 4))
    said = (
        f"Of {edges} edges of {len(rows)} relations, the best head of each finds {hits} here, chosen on this function; "
        f"offsets find {by_offset}."
    )
    return said, rows, page._repr_html_()


def app(model: str) -> gradio.Blocks:
    """The app on a model, which is loaded once.

    Raises ModelError for a model that cannot be probed, or without gradio.
    """
    try:
        import gradio
    except ImportError:
        raise ModelError(
            'this needs Gradio: pip install -c constraints.txt -e ".[space]"'
        ) from None
    encoder = load(model)
    _offsets("python")  # whoever clicks first does not wait for it
    languages = [name for name, language in LANGUAGES.items() if not language.of_treebanks]

    def show(code: str, config: str, relation: str | None) -> tuple[Any, ...]:
        said, rows, picture = explained(encoder, code, config, relation)
        names = [row[0] for row in rows]
        chosen = relation if relation in names else (names or [None])[0]
        return said, rows, picture, gradio.Dropdown(choices=names, value=chosen)

    with gradio.Blocks(title=f"CodeSyntax: {encoder.name}", analytics_enabled=False) as blocks:
        gradio.Markdown(f"# What the attention heads of {encoder.name} find in your code\n\n{HELP}")
        with gradio.Row():
            code = gradio.Textbox(
                EXAMPLE, label="Code", lines=10, max_lines=24, max_length=LONGEST_CODE + 1
            )
            with gradio.Column():
                config = gradio.Dropdown(languages, value="python", label="Language")
                relation = gradio.Dropdown(
                    [], label="Relation of the picture", allow_custom_value=True
                )
                button = gradio.Button("Show", variant="primary")
                said = gradio.Textbox(label="Found", lines=3)
        table = gradio.Dataframe(headers=TABLE_COLUMNS, label="By relation", interactive=False)
        picture = gradio.HTML(label="Picture")
        inputs, outputs = [code, config, relation], [said, table, picture, relation]
        button.click(show, inputs, outputs, api_name="show", concurrency_limit=1)
        relation.input(show, inputs, outputs, api_name=False, concurrency_limit=1)
    blocks.queue(max_size=20)
    return blocks
