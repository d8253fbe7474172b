"""What masking costs over a plain forward pass of its copies, and against the procedure of the study.

    python tests/benchmarks/masking.py --data codesyntax --tokenizer FOLDER                    # base width, 6 layers
    python tests/benchmarks/masking.py --data codesyntax --tokenizer FOLDER --shape embedded   # the embedded model's
    python tests/benchmarks/masking.py --data codesyntax --model FOLDER                        # another

- *ratio*: preparing, masking, restoring and comparing, over the forward pass of the distinct copies with all logits,
  longest first, in the batches that are fastest for it.
- *procedure of the study*: for each copy the tokenizer, each sub-token aligned with the leaves of the tree, a pass of
  its own with all logits, and a process with a time limit for both trees and the edit distance in plain Python; and the
  same for 20 copies of each absent node type, with nothing masked, as it did. `ms of the study`: for a copy, by step.

CPU time of one thread and of the processes that it starts, on functions spread evenly over the lengths of the data:
fewer `--functions` give a figure for those alone.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import queue
import resource
import sys
from collections import Counter
from pathlib import Path

import torch
from tqdm import tqdm
from transformers import AutoTokenizer, RobertaConfig, RobertaForMaskedLM

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.models.train_tiny import TINY, model_of

from codesyntax_dataset.languages import grammar
from codesyntax_metric.ast_similarity.similarity import node_types
from probing.instruments.masking import mask
from probing.instruments.masking.fill import Copy
from probing.instruments.masking.masking import Masker
from probing.runs.batches import Batches
from probing.runs.data import read_functions
from probing.runs.session import Session

BUDGETS = (1, 1024, 4096)


def cpu() -> float:
    """Seconds of this process and of those that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def base(tokenizer) -> torch.nn.Module:
    """A RoBERTa of base width with six layers and random weights, for a tokenizer of the same kind."""
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=len(tokenizer), num_hidden_layers=6, max_position_embeddings=514
    )
    return RobertaForMaskedLM(config).eval()


SHAPES = {"base": base, "embedded": lambda tokenizer: model_of(tokenizer, TINY, 0).eval()}


def distinct(job: mask.Masking) -> list[Copy]:
    found = {}
    for function, source in zip(
        job.masker.read([source.code for source in job.functions]), job.functions
    ):
        for copy in job.copies(function, source.index)[0]:
            found[source.index, copy.positions.tobytes()] = Copy(function.ids, copy.positions)
    return list(found.values())


def forward(job: mask.Masking, copies: list[Copy], budget: int) -> float:
    """Seconds of a plain forward pass over all copies."""
    model, started = job.model, cpu()

    def logits(batch, inputs):
        for row, copy in enumerate(batch):
            inputs["input_ids"][row, copy.positions] = model.mask
        with torch.inference_mode():
            return model.model(**inputs).logits[:1, :1, :1]

    Batches(model, budget).each(copies, tqdm(disable=True), logits)
    return cpu() - started


def run(job: mask.Masking) -> float:
    """Seconds of our own run."""
    started = cpu()
    for part in job.parts:
        job.run(part, tqdm(disable=True))
    return cpu() - started


def published(job: mask.Masking) -> tuple[float, int, Counter[str]]:
    """Seconds of the procedure of the study, its number of copies, and the seconds of some steps."""
    model, tokenizer, language = job.model.model, job.masker.tokenizer, job.masker.language
    started, number, steps = cpu(), 0, Counter()

    def step(name, does, *arguments):
        before = cpu()
        found = does(*arguments)
        steps[name] += cpu() - before
        return found

    def passed(ids):
        with torch.inference_mode():
            return model(input_ids=ids[None]).logits[0].argmax(-1)

    for source in job.functions:
        reader = Masker(tokenizer, language, job.settings.node_types, protocol="published")
        (function,) = reader.read([source.code])
        copies, *_ = job.copies(function, source.index)
        absent = len(job.settings.node_types) - sum(copy.number == 0 for copy in copies)
        copies = [copy.positions for copy in copies]
        for positions in [*copies, *[[]] * (absent * job.settings.draws)]:
            ids = torch.tensor(step("aligning", aligned, tokenizer, source.code, language))
            ids[torch.as_tensor(positions, dtype=torch.long)] = tokenizer.mask_token_id
            predicted = step("passing", passed, ids)
            text = tokenizer.decode(torch.where(ids == tokenizer.mask_token_id, predicted, ids))
            step("comparing", compared_apart, source.code, text, language)
            number += 1
    return cpu() - started, number, steps


def aligned(tokenizer, code: str, language: str) -> list[int]:
    """The sub-tokens of code, after looking for the first leaf of the tree that each overlaps, which the study does not
    use: for each sub-token it computes the characters of all leaves again, from their rows and columns."""
    encoding = tokenizer(code, return_offsets_mapping=True)
    known, leaves = grammar.node_types(language), []

    def walk(node):
        for child in [] if node.type == "string" else node.children:
            walk(child)
        if node.type == "string" or not node.children:
            leaves.append(node)

    walk(grammar.parse(code, language).root_node)
    types = []
    for token, (start, end) in zip(encoding["input_ids"], encoding["offset_mapping"]):
        if token in tokenizer.all_special_ids:
            continue
        lines = code.split("\n")
        spans = [
            (character(leaf.start_point, lines), character(leaf.end_point, lines))
            for leaf in leaves
        ]
        for leaf, (first, last) in zip(leaves, spans):
            if first <= start < last or first < end <= last:
                types.append((known.index(leaf.type), known.index(leaf.parent.type)))
                break
    return encoding["input_ids"]


def character(point: tuple[int, int], lines: list[str]) -> int:
    row, column = point
    return sum(map(len, lines[:row])) + row + len(lines[row][:column])


def compared_apart(code: str, text: str, language: str) -> tuple[float, float, float]:
    """The similarities of two texts' trees, from a process of its own that may take five seconds; else zeros."""
    apart = multiprocessing.get_context("fork")
    results = apart.Queue()
    process = apart.Process(target=lambda: results.put(compared(code, text, language)))
    process.start()
    try:
        return results.get(timeout=5)
    except queue.Empty:
        process.kill()
        return 0.0, 0.0, 0.0
    finally:
        process.join()


def compared(code: str, text: str, language: str) -> tuple[float, float, float]:
    one, other = (node_types(source, language) for source in (code, text))
    shared, total = (Counter(one) & Counter(other)).total(), len(one) + len(other)
    return (
        shared / (total - shared),
        2 * shared / total,
        1 - edit_distance(one, other) / max(len(one), len(other)),
    )


def edit_distance(one: list[str], other: list[str]) -> int:
    if one == other:
        return 0
    row = list(range(len(other) + 1))
    for number, left in enumerate(one, 1):
        diagonal, row[0] = row[0], number
        for place, right in enumerate(other, 1):
            diagonal, row[place] = (
                row[place],
                min(row[place] + 1, row[place - 1] + 1, diagonal + (left != right)),
            )
    return row[-1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="a dataset folder")
    parser.add_argument("--model", help="a masked language model, instead of random weights")
    parser.add_argument("--shape", choices=SHAPES, default="base", help="of random weights")
    parser.add_argument(
        "--tokenizer", help="for random weights: a byte-level tokenizer with a mask token"
    )
    parser.add_argument("--functions", type=int, default=150)
    parser.add_argument(
        "--published", type=int, default=5, help="functions for the procedure of the study"
    )
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = args.model
    if model is None:
        tokenizer = AutoTokenizer.from_pretrained(args.tokenizer)
        model = SHAPES[args.shape](tokenizer), tokenizer
    options = {
        "node_types": grammar.checked_node_types("python"),
        "protocol": "current",
        "rate": 1.0,
        "draws": 20,
        "seed": 0,
    }
    job = mask.Masking(
        Session(model, max_length=511), read_functions(args.data, "python", "test"), **options
    )
    step = max(1, len(job.functions) // args.functions)
    job.functions = job.functions[::step][: args.functions]
    started = cpu()
    copies = distinct(job)
    before = cpu() - started  # a run reads and masks all functions before it begins, too
    few = copies[:: max(1, len(copies) // 100)]
    budget = min(BUDGETS, key=lambda budget: forward(job, few, budget))
    plain = forward(job, copies, budget)
    whole = before + run(job)
    made = {
        "functions": len(job.functions),
        "copies": sum(source.copies for source in job.functions),
    }
    made |= {"distinct": len(copies), "forward s": round(plain, 1), "whole s": round(whole, 1)}
    made |= {"ratio": round(whole / plain, 3), "ms a copy": round(1000 * whole / made["copies"], 2)}
    job.functions = job.functions[:: max(1, len(job.functions) // args.published)][: args.published]
    theirs, number, steps = published(job)
    made |= {
        "published copies": number,
        "published s": round(theirs, 1),
        "times cheaper": round(theirs / run(job), 1),
    }
    made |= {
        "ms of the study": {
            name: round(1000 * seconds / number, 1) for name, seconds in steps.items()
        }
    }
    print(json.dumps(made))


if __name__ == "__main__":
    main()
