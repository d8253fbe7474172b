"""The page of the metric's Space: its card. `evaluate.load` reads the scripts beside this file and never runs it."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

CARD = Path(__file__).with_name("README.md").read_text(encoding="utf-8")

with gr.Blocks(title="CodeSyntax metric") as page:
    gr.Markdown(CARD.split("---\n", 2)[2])  # without the front matter

if __name__ == "__main__":
    page.launch()
