"""The page of the metric's Space: its card, and a form that scores the attention of one function.

`evaluate.load` uses the scripts beside this file and never runs it. The Space runs it as a script,
so it imports its siblings by their plain names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from topk_uas import RULES, CodeSyntaxError, RankCounts, edge_columns, rank_attention, score

if TYPE_CHECKING:
    import gradio as gr

KS = (1, 3, 10, 20)
COLUMNS = ["relation", "edges", *(f"top-{k} UAS" for k in KS), "best head at k = 1"]

EXAMPLE = """{
  "attention": [[
    [[0, 0, 0, 0], [0.1, 0, 0.2, 0.7], [0, 0, 0, 0], [0, 0, 0, 0]],
    [[0, 0, 0, 0], [0.1, 0, 0.7, 0.2], [0, 0, 0, 0], [0, 0, 0, 0]]
  ]],
  "edges": [["If:if->test", 1, 2, 3]]
}"""

HELP = """Paste the attention of one function as JSON: `attention`, a list of layers, each a list of heads, each a
matrix (tokens, tokens) whose rows attend to its columns, pooled to code tokens; and `edges`, a list of
`[relation, head, first, last]`, token indices from 0, `last` inclusive."""

LIMIT = 1_000_000  # characters


def score_example(text: str, rule: str) -> tuple[str, list[list[object]]]:
    """The scores of one function, as a sentence and the rows of a table with the columns COLUMNS.

    `text` is JSON as described in HELP, `rule` one of RULES. If either is invalid, the sentence
    says so and the table has no rows.
    """
    try:
        attention, edges = _parse(text)
        ranks = rank_attention(attention, edges)
        counts = RankCounts(*ranks.shape[2:])
        counts.add(edge_columns(edges)[0], ranks)
        result = score(counts, KS, rule)
    except ValueError as error:  # ours and those of json
        return f"This cannot be scored: {error}", []
    rows: list[list[object]] = []
    for relation, entry in result["relations"].items():
        scores = [entry[str(k)]["score"] for k in KS]
        rows.append(
            [relation, entry["edges"], *scores, "layer {layer}, head {head}".format(**entry["1"])]
        )
    means = [
        "none" if result["scores"][str(k)] is None else f"{result['scores'][str(k)]:.1f}"
        for k in KS
    ]
    return f"Mean over relations at k = 1, 3, 10, 20: {', '.join(means)} percent.", rows


def _parse(text: str) -> tuple[object, list[object]]:
    if len(text) > LIMIT:
        raise CodeSyntaxError(
            f"the example has {len(text):,} characters, expected at most {LIMIT:,}"
        )
    try:
        example = json.loads(text)
    except RecursionError:
        raise CodeSyntaxError("the JSON is nested too deeply") from None
    if not isinstance(example, dict) or set(example) != {"attention", "edges"}:
        raise CodeSyntaxError(
            'expected a JSON object with "attention" and "edges" and nothing else'
        )
    if not isinstance(example["edges"], list):
        raise CodeSyntaxError('"edges" is not a list')
    return example["attention"], example["edges"]


def build_page() -> gr.Blocks:
    """Build the page, without serving it."""
    import gradio as gr

    card = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    with gr.Blocks(title="CodeSyntax metric") as page:
        gr.Markdown(f"# Score an example\n\n{HELP}")
        text = gr.Textbox(EXAMPLE, label="Example", lines=10, max_lines=30)
        rule = gr.Radio(list(RULES), value=RULES[0], label="Which token of the dependent counts")
        button = gr.Button("Score", variant="primary")
        score_box = gr.Textbox(label="Score")
        table = gr.Dataframe(headers=COLUMNS, label="By relation", interactive=False)
        button.click(score_example, [text, rule], [score_box, table], api_name="score")
        gr.Markdown(card.split("---\n", 2)[2])  # without the front matter
    return page


if __name__ == "__main__":
    build_page().launch()
