"""What masking costs over a plain forward pass of its copies, and against the procedure of the study.

    python tests/benchmarks/masking.py --data codesyntax                     # a model of base width, 6 layers
    python tests/benchmarks/masking.py --data codesyntax --model FOLDER      # another masked language model

- *ratio*: preparing, masking, restoring and comparing, over the forward pass of the distinct copies with all logits,
  longest first, in the batches that are fastest for it.
- *procedure of the study*: for each copy the tokenizer, a pass of its own with all logits, both trees and the edit
  distance in plain Python; and the same for 20 copies of each absent node type, with nothing masked, as it did.

CPU time of one thread, on functions spread evenly over the lengths of the data.
"""

from __future__ import annotations

import argparse
import json
import time

import torch
from tqdm.auto import tqdm
from transformers import AutoTokenizer, RobertaConfig, RobertaForMaskedLM

from codesyntax_dataset.languages.grammar import checked_node_types
from codesyntax_metric.ast_similarity.similarity import node_types
from probing.prediction import mask
from probing.prediction.fill import Copy
from probing.prediction.masking import Masker
from probing.runs.batches import Batches
from probing.runs.data import read_functions

BUDGETS = (1, 1024, 4096)


def base(tokenizer) -> tuple:
    """A RoBERTa of base width with six layers and random weights, which reads with a tokenizer of the same kind."""
    torch.manual_seed(0)
    config = RobertaConfig(vocab_size=len(tokenizer), num_hidden_layers=6, max_position_embeddings=514)
    return RobertaForMaskedLM(config).eval(), tokenizer


def distinct(job: mask.MaskJob) -> list[Copy]:
    found = {}
    for function, source in zip(job.masker.read([source.code for source in job.functions]), job.functions):
        for pair in mask.copies_of(function, source.index, job.settings)[0]:
            for copy in pair.copies:
                found[source.index, copy.positions.tobytes()] = Copy(function.ids, copy.positions)
    return list(found.values())


def forward(job: mask.MaskJob, copies: list[Copy], budget: int) -> float:
    """Seconds of a plain forward pass over all copies."""
    model, started = job.model, time.process_time()

    def logits(batch, inputs):
        for row, copy in enumerate(batch):
            inputs["input_ids"][row, copy.positions] = model.mask
        with torch.inference_mode():
            return model.model(**inputs).logits[:1, :1, :1]

    Batches(model, budget).each(copies, tqdm(disable=True), logits)
    return time.process_time() - started


def published(job: mask.MaskJob, functions: int) -> float:
    """Seconds of the procedure of the study on the first functions."""
    started = time.process_time()
    model, tokenizer, language = job.model.model, job.masker.tokenizer, job.masker.language
    for source in job.functions[:functions]:
        reader = Masker(tokenizer, language, job.settings.node_types, protocol="published")
        (function,) = reader.read([source.code])
        pairs, _ = mask.copies_of(function, source.index, job.settings)
        copies = [copy.positions for pair in pairs for copy in pair.copies]
        absent = len(job.settings.node_types) - len(pairs)
        for positions in [*copies, *[[]] * (absent * job.settings.draws)]:
            ids = torch.tensor(tokenizer(source.code)["input_ids"])
            ids[torch.as_tensor(positions, dtype=torch.long)] = tokenizer.mask_token_id
            with torch.inference_mode():
                predicted = model(input_ids=ids[None]).logits[0].argmax(-1)
            masked = ids == tokenizer.mask_token_id
            text = tokenizer.decode(torch.where(masked, predicted, ids))
            edit_distance(node_types(source.code, language), node_types(text, language))
    return time.process_time() - started


def edit_distance(one: list[str], other: list[str]) -> int:
    row = list(range(len(other) + 1))
    for number, left in enumerate(one, 1):
        diagonal, row[0] = row[0], number
        for place, right in enumerate(other, 1):
            diagonal, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, diagonal + (left != right))
    return row[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="a dataset folder")
    parser.add_argument("--model", help="a masked language model; by default six layers of base width, random weights")
    parser.add_argument("--tokenizer", help="for the default model: a byte-level tokenizer with a mask token")
    parser.add_argument("--functions", type=int, default=150)
    parser.add_argument("--published", type=int, default=5, help="functions for the procedure of the study")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = args.model or base(AutoTokenizer.from_pretrained(args.tokenizer))
    options = {"node_types": checked_node_types("python"), "protocol": "current", "rate": 1.0, "draws": 20, "seed": 0}
    job = mask.prepare(model, read_functions(args.data, "python", "test"), max_length=511, **options)
    step = max(1, len(job.functions) // args.functions)
    job.functions = job.functions[::step][: args.functions]
    copies = distinct(job)
    few = copies[:: max(1, len(copies) // 100)]
    budget = min(BUDGETS, key=lambda budget: forward(job, few, budget))
    plain = forward(job, copies, budget)
    started = time.process_time()
    for part in job.parts:
        job.run(part, tqdm(disable=True))
    whole = time.process_time() - started
    made = {"functions": len(job.functions), "copies": sum(source.copies for source in job.functions)}
    made |= {"distinct": len(copies), "forward s": round(plain, 1), "whole s": round(whole, 1)}
    made |= {"ratio": round(whole / plain, 3), "ms a copy": round(1000 * whole / made["copies"], 2)}
    some = job.functions[:: max(1, len(job.functions) // args.published)][: args.published]
    job.functions = some
    theirs, started = published(job, len(some)), time.process_time()
    for part in job.parts:
        job.run(part, tqdm(disable=True))
    made |= {"published s": round(theirs, 1), "times cheaper": round(theirs / (time.process_time() - started), 1)}
    print(json.dumps(made))


if __name__ == "__main__":
    main()
