"""The page of the metric's Space: its card. What heads find in code is shown by `codesyntax explore`.

`evaluate.load` uses the scripts beside this file and never runs it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import gradio as gr


def build_page() -> gr.Blocks:
    """Build the page, without serving it."""
    import gradio as gr

    card = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    with gr.Blocks(title="CodeSyntax metric") as page:
        gr.Markdown(card.split("---\n", 2)[2])  # without the front matter
    return page


if __name__ == "__main__":
    build_page().launch()
