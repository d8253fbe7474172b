"""The page of the metric's Space: its card, and a form that compares two pieces of code.

`evaluate.load` uses the scripts beside this file and never runs it. The Space runs it as a script,
so it imports its siblings by their plain names.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from similarity import CodeSyntaxError, Similarity, compare, node_types

if TYPE_CHECKING:
    import gradio as gr

LANGUAGES = ("python", "java")
"""Those whose grammars requirements.txt installs."""

EXAMPLE = (
    "def f(x):\n    if x > 0:\n        return x\n",
    "def f(x):\n    if x:\n        return x\n",
)


def compare_example(first: str, second: str, language: str, anonymous: bool) -> list[list[object]]:
    """The rows of a table: each similarity of the two, or the reason why they cannot be
    compared."""
    try:
        similarity = compare(
            *(node_types(code, language, anonymous=anonymous) for code in (first, second))
        )
    except CodeSyntaxError as error:
        return [["cannot be compared", str(error)]]
    return [[name, round(value, 4)] for name, value in zip(Similarity._fields, similarity)]


def build_page() -> gr.Blocks:
    """Build the page, without serving it."""
    import gradio as gr

    card = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    with gr.Blocks(title="AST similarity") as page:
        gr.Markdown("# Compare two pieces of code")
        with gr.Row():
            codes = [
                gr.Textbox(code, label=label, lines=10)
                for code, label in zip(EXAMPLE, ("One", "Other"))
            ]
        language = gr.Radio(list(LANGUAGES), value=LANGUAGES[0], label="Language")
        anonymous = gr.Checkbox(True, label="Keywords, operators and punctuation are nodes, too")
        button = gr.Button("Compare", variant="primary")
        table = gr.Dataframe(
            headers=["similarity", "value"], label="From 0 to 1", interactive=False
        )
        button.click(compare_example, [*codes, language, anonymous], table, api_name="compare")
        gr.Markdown(card.split("---\n", 2)[2])  # without the front matter
    return page


if __name__ == "__main__":
    build_page().launch()
