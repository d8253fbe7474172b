"""Train a tiny model, and keep checkpoints at equal distances.

python tests/benchmarks/noise.py train FOLDER [--decoder] [--steps N] [--seed N]
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    Trainer,
)

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.models import train_tiny

import probing

CHECKPOINTS = 16
FUNCTIONS = (16, 32, 64, 128)
HELD_OUT = 20  # every so many functions of the library one is for the loss


@click.group()
def main() -> None:
    """Signal and noise of the numbers of `probing.evaluate` over a training."""


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--decoder", is_flag=True, help="Train the decoder instead of the masked language model."
)
@click.option("--steps", type=click.IntRange(CHECKPOINTS), default=640, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def train(folder: Path, decoder: bool, steps: int, seed: int) -> None:
    """Train on one thread, and write checkpoint-STEP folders with the loss on held-out functions of the library."""
    torch.set_num_threads(1)
    texts = train_tiny.functions(train_tiny.library())
    held_out = texts[::HELD_OUT]
    del texts[::HELD_OUT]
    sizes = train_tiny.TINY_DECODER if decoder else train_tiny.TINY
    trainer = train_tiny.trainer_of(texts, folder, decoder, steps, seed, sizes)
    inputs = train_tiny.inputs_of(trainer.processing_class, held_out)

    def keep(step: int) -> None:
        checkpoint = folder / f"checkpoint-{step}"
        trainer.model.save_pretrained(checkpoint)
        trainer.processing_class.save_pretrained(checkpoint)
        loss = validation_loss(trainer, inputs, decoder)
        (checkpoint / "loss.json").write_text(json.dumps({"loss": loss}))
        click.echo(f"step {step:,} of {steps:,}: loss {loss:.3f}")

    trainer.add_callback(
        train_tiny.AtSteps(lambda step: step and step % (steps // CHECKPOINTS) == 0, keep)
    )
    trainer.train()


def validation_loss(trainer: Trainer, inputs: list[np.ndarray], decoder: bool) -> float:
    """The mean over batches of held-out inputs, in nats per predicted sub-token; the same masks and holes each time."""
    collate = train_tiny.collator(trainer.processing_class, decoder, seed=0)
    model = trainer.model.eval()
    with torch.no_grad():
        losses = [
            float(model(**collate([{"input_ids": ids} for ids in inputs[i : i + 8]])).loss)
            for i in range(0, len(inputs) // 2, 8)
        ]
    model.train()
    return float(np.mean(losses))


@main.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
def table(folders: tuple[Path, ...]) -> None:
    """Print the table of trainings that differ in their seed alone. What was evaluated before is read."""
    torch.set_num_threads(1)
    late = [
        sorted(folder.glob("checkpoint-*"), key=step_of)[CHECKPOINTS // 2 :] for folder in folders
    ]
    losses = np.array(
        [[json.loads((path / "loss.json").read_text())["loss"] for path in paths] for paths in late]
    )
    click.echo(
        "| number | functions | seconds | last | signal | steps | seeds | signal/steps | signal/seeds | r |"
    )
    click.echo("| --- |" + " ---: |" * 9)
    for functions in FUNCTIONS:
        called = [[evaluated(path, functions) for path in paths] for paths in late]
        seconds = np.median([[call["seconds"] for call in calls] for calls in called])
        for name in called[0][0]["numbers"]:
            # (seeds, checkpoints)
            values = np.array([[call["numbers"][name] for call in calls] for calls in called])
            signal = np.ptp(values, axis=1).mean()
            # variances of a second difference: 1 + 4 + 1
            steps = np.sqrt((np.diff(values, 2, axis=1) ** 2).mean() / 6)
            seeds = np.sqrt(values.var(axis=0, ddof=1).mean())
            r = np.mean([np.corrcoef(of, loss)[0, 1] for of, loss in zip(values, losses)])
            cells = [
                seconds,
                values[:, -1].mean(),
                signal,
                steps,
                seeds,
                signal / steps,
                signal / seeds,
            ]
            click.echo(
                f"| `{name}` | {functions} | "
                + " | ".join(f"{cell:.2f}" for cell in [*cells, r])
                + " |"
            )


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def evaluated(checkpoint: Path, functions: int) -> dict[str, Any]:
    """The numbers of a checkpoint, and the CPU seconds of the call."""
    file = checkpoint / f"syntax-{functions}.json"
    if not file.exists():
        config = AutoConfig.from_pretrained(checkpoint)
        kind = AutoModelForCausalLM if config.model_type == "llama" else AutoModelForMaskedLM
        model, tokenizer = (
            kind.from_pretrained(checkpoint),
            AutoTokenizer.from_pretrained(checkpoint),
        )
        started = time.process_time()
        numbers = probing.evaluate(model, tokenizer, functions=functions)
        file.write_text(json.dumps({"seconds": time.process_time() - started, "numbers": numbers}))
    return json.loads(file.read_text())


if __name__ == "__main__":
    main()
