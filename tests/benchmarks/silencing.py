"""What silencing heads costs over bare forward passes, and what it finds.

    python tests/benchmarks/silencing.py --data codesyntax --model tiny-code-mlm --functions 40
    python tests/benchmarks/silencing.py --data codesyntax --model FOLDER --config java

- *passes*: forward passes of single functions, as said before the run, and as counted in it.
- *ratio*: CPU time of preparing, learning the means and silencing, over that of the bare forward pass of the same copies
  with torch's fused attention, in the batches that are fastest for it: of the whole model, with all logits, and with
  logits only at the positions that are asked for.

CPU time of one thread, on functions spread evenly over the lengths of the data. Heads are chosen on all of validation.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import torch
from tqdm import tqdm

from probing.instruments.attention.probe import Probing
from probing.instruments.masking.fill import key_of
from probing.instruments.silencing import silence
from probing.instruments.silencing.ablate import choose
from probing.models.encoder import LanguageModel
from probing.runs.batches import Batches
from probing.runs.data import read_functions
from probing.runs.experiment import run
from probing.runs.session import Session

BUDGETS = (1, 1024, 4096)


def forward(model: LanguageModel, passes: list[silence.Pass], budget: int, lean: bool) -> float:
    """Seconds of a bare forward pass over all copies: of the whole model, or with logits where they are asked for."""
    started = time.process_time()

    def logits(batch, inputs):
        if model.mask is not None:
            for row, one in enumerate(batch):
                inputs["input_ids"][row, one.positions] = model.mask
        if lean:
            return torch.stack(
                [
                    found.logsumexp(dim=1)[0]
                    for found in model.scoring.logits(
                        inputs, *silence.Predictor(model).places(batch)
                    )
                ]
            )
        with torch.inference_mode():
            return model.scoring.model(**inputs).logits[:1, :1, :1]

    model.scoring.model.set_attn_implementation("sdpa")
    Batches(model, budget).each(
        sorted(passes, key=lambda one: -len(one.ids)), tqdm(disable=True), logits
    )
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="a dataset folder")
    parser.add_argument("--model", default="tiny-code-mlm")
    parser.add_argument("--config", default="python")
    parser.add_argument("--functions", type=int, default=40)
    args = parser.parse_args()
    torch.set_num_threads(1)
    session = Session(args.model)
    model = session.language_model()
    functions, reference = (
        read_functions(args.data, args.config, split) for split in ("test", "validation")
    )
    test, validation = Probing(session, functions), Probing(session, reference)
    heads = choose(run(validation), run(test), draws=20, seed=0)
    counted, body = [], model.model
    own = body.forward

    def counting(*arguments, **named):
        counted.append(len(arguments[0] if arguments else named["input_ids"]))
        return own(*arguments, **named)

    body.forward = counting
    started = time.process_time()
    job = silence.Silencing(session, functions, validation, test, lambda _: heads, draws=20, seed=0)
    before = (time.process_time() - started) * min(1, args.functions / len(job.functions))
    job.functions = job.functions[:: max(1, len(job.functions) // args.functions)][: args.functions]
    distinct = {
        key_of(one): one
        for source in job.functions
        for one in silence.passes_of(source, job.provenance.heads, model.mask is not None)
    }
    passes = list(distinct.values())
    # of a whole run they are a small part
    job.reference = job.reference[: max(1, len(job.functions) // 10)]
    started = time.process_time()
    for part in job.parts:
        job.run(part, tqdm(disable=True))
    whole = before + time.process_time() - started
    ran = sum(counted)
    bare = passes + [silence.Pass(-1, ids, np.ones(1, int), None) for ids in job.reference]
    few = bare[:: max(1, len(bare) // 100)]
    made = {
        "functions": len(job.functions),
        "passes said": len(bare),
        "passes ran": ran,
        "whole s": round(whole, 1),
    }
    for name, lean in (("whole model", False), ("logits where asked", True)):
        budget = min(BUDGETS, key=lambda budget: forward(model, few, budget, lean))
        plain = forward(model, bare, budget, lean)
        made |= {f"{name} s": round(plain, 1), f"ratio to {name}": round(whole / plain, 3)}
    print(json.dumps(made))


if __name__ == "__main__":
    main()
