"""What `probing.SyntaxCallback` costs a training of the embedded decoder's shape, and that it changes nothing.

    python tests/benchmarks/callback.py

Trains 50 steps twice, with the callback every 10 steps and without it, in float32, in bfloat16 and with accumulated
gradients, on one thread. Prints whether all losses and weights are the same, bit for bit; the CPU seconds of a step and of
a later call of `evaluate`, and their share at two intervals; and by how much a call raises the peak of the memory.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback, Trainer, TrainingArguments

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.models import train_tiny

import probing
from probing.models.load import load_tokenizer

FUNCTIONS, STEPS = 128, 50


def trained(tokenizer: Any, dtype: torch.dtype, watched: bool, accumulated: int) -> Trainer:
    """A trainer after STEPS steps; one batch has as many sub-tokens as those of the embedded decoder's training."""
    model = train_tiny.decoder_of(tokenizer, train_tiny.TINY_DECODER, 0).to(dtype)
    texts = train_tiny.functions(train_tiny.library())[:2000]
    inputs = [
        ids for ids in train_tiny.inputs_of(tokenizer, texts) if len(ids) == train_tiny.LONGEST
    ]
    data = [{"input_ids": ids, "labels": ids} for ids in inputs]
    with tempfile.TemporaryDirectory() as folder:
        options = {
            "max_steps": STEPS,
            "logging_steps": 1,
            "save_strategy": "no",
            "report_to": "none",
            "disable_tqdm": True,
        }
        sizes = {
            "per_device_train_batch_size": 4 // accumulated,
            "gradient_accumulation_steps": accumulated,
        }
        trainer = Trainer(
            model, TrainingArguments(folder, use_cpu=True, **options, **sizes), train_dataset=data
        )
        trainer.remove_callback(PrinterCallback)
        if watched:
            trainer.add_callback(
                probing.SyntaxCallback(trainer, tokenizer, every=10, functions=FUNCTIONS)
            )
        trainer.train()
    return trainer


def losses(trainer: Trainer) -> list[float]:
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def main() -> None:
    torch.set_num_threads(1)
    tokenizer, _ = load_tokenizer("tiny-code-lm")
    for dtype, accumulated in ((torch.float32, 1), (torch.bfloat16, 1), (torch.float32, 2)):
        started = time.process_time()
        alone = trained(tokenizer, dtype, False, accumulated)
        step = (time.process_time() - started) / STEPS
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        watched = trained(tokenizer, dtype, True, accumulated)
        same = losses(alone) == losses(watched) and all(
            map(torch.equal, alone.model.parameters(), watched.model.parameters())
        )
        raised = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
        started = time.process_time()
        probing.evaluate(watched.model, tokenizer, functions=FUNCTIONS)
        call = time.process_time() - started
        shares = ", ".join(
            f"{100 * call / (every * step):.1f} % every {every:,}" for every in (500, 1000)
        )
        print(
            f"{dtype}, gradients of {accumulated}: {'the same' if same else 'OTHERS'} over {STEPS} steps; a step "
            f"{step:.2f} s, a call {call:.1f} s, {shares} steps; peak + {raised / 1024:.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
