"""What filling holes costs over transformers' own generation, and whether it writes the same: `tiny-code-lm`, 200 nodes.

    python tests/benchmarks/infilling.py

The nodes are those of the sample's Python functions, drawn at random, each a hole. Both write them in the same batches,
greedily, with a cache; `generate` pads on the left, and each of its batches ends with its longest hole. CPU time of one
thread; the two take turns.
"""

from __future__ import annotations

import random
import statistics
import time
from pathlib import Path

import numpy as np
import torch

import codesyntax_dataset
from codesyntax_dataset import corpus
from codesyntax_dataset.schema import Skips
from probing.instruments.masking.fill import Copy, Filler
from probing.instruments.masking.masking import INFILLING, Masker
from probing.models.load import load_restoring
from probing.models.location import TINY_DECODER
from probing.models.masked import InfillingModel

NODES, ROUNDS = 200, 3


def nodes(loaded: InfillingModel) -> list[Copy]:
    """Holes, one of each node, drawn at random from the sample."""
    sample = Path(codesyntax_dataset.__file__).with_name("sample")
    codes = [function.code for function in corpus.read(str(sample / "test"), "python", Skips())]
    masker, found = Masker(loaded.tokenizer, "python", protocol=INFILLING), []
    for function in masker.read(codes):
        if len(function.ids) <= loaded.longest:
            for kind in masker.node_types:
                found += [Copy(function.ids, function.mask(kind, nodes=[at]).positions)
                          for at in range(len(function.nodes(kind)))]  # fmt: skip
    return random.Random(0).sample([copy for copy in found if len(copy.positions)], NODES)


def generated(
    loaded: InfillingModel, batch: list[tuple[np.ndarray, np.ndarray]]
) -> list[list[int]]:
    """What `generate` writes into the holes of a batch of texts, as ids of the model's `scores`."""
    prompts = [text[: positions[0]] for text, positions in batch]
    longest = max(map(len, prompts))
    ids = np.full((len(batch), longest), loaded.tokenizer.pad_token_id, np.int64)
    for row, prompt in zip(ids, prompts):
        row[longest - len(prompt) :] = prompt
    there = np.arange(longest) >= longest - np.array([[len(prompt)] for prompt in prompts])
    written = loaded.model.generate(
        torch.from_numpy(ids),
        attention_mask=torch.from_numpy(there.astype(np.int64)),
        max_new_tokens=max(len(positions) for _, positions in batch),
        do_sample=False,
        eos_token_id=loaded._stops.tolist(),
        pad_token_id=loaded.tokenizer.pad_token_id,
    )[:, longest:].tolist()
    cut = []
    for row, (_, positions) in zip(written, batch):
        end = next((at for at, token in enumerate(row) if token in loaded._stops), len(row))
        kept = row[: min(end, len(positions))]
        cut.append(kept + [loaded._nothing] * (len(positions) - len(kept)))
    return cut


def main() -> None:
    torch.set_num_threads(1)
    loaded = load_restoring(TINY_DECODER, device="cpu")
    assert isinstance(loaded, InfillingModel)
    copies = nodes(loaded)
    texts = [text for copy in copies for text in loaded.texts(*copy)]
    assert len(texts) == NODES
    order = sorted(range(NODES), key=lambda number: -len(texts[number][0]))
    filler, batches = Filler(loaded), []
    while (start := sum(map(len, batches))) < NODES:
        batches.append(
            order[
                start : start + len(filler.batch([Copy(*texts[number]) for number in order], start))
            ]
        )
    ratios = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for batch in batches:
            generated(loaded, [texts[number] for number in batch])
        half = time.process_time()
        (ours,) = filler.fill([copies])
        ratios.append((time.process_time() - half) / (half - began))
    same = sum(
        generated(loaded, [text]) == [one.predicted.tolist()] for text, one in zip(texts, ours)
    )
    print(
        f"{NODES} nodes of {sum(len(copy.positions) for copy in copies)} sub-tokens in {len(batches)} batches"
    )
    print(f"written as by generate, alone: {same}")
    print(
        f"CPU time over generate: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    )


if __name__ == "__main__":
    main()
