"""What reports claim of masked language models that nobody trained, `python tests/benchmarks/untrained_masking.py`.

As many twins as asked for (40), of five families, restore the masked functions of the sample, against both controls.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import datasets
from support.simulations.untrained_masking import FAMILIES, claimed, masked_twin

from codesyntax_dataset.build import build


def main(twins: int = 40, limit: int = 40, draws: int = 1) -> None:
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        build("sample", ["python"], data)
        total, with_claim = Counter(), Counter()
        for number in range(twins):
            family = [*FAMILIES][number % len(FAMILIES)]
            found = claimed(masked_twin(family, number, data, Path(folder) / str(number), limit, draws))
            print(number, family, found, flush=True)
            total.update(found)
            with_claim.update(kind for kind, count in found.items() if count)
        print(f"{twins} untrained twins, {limit} functions, {draws} draws, 2 controls")
        for kind in ("sentences", "effects", "gains"):
            print(f"{kind}: {total[kind]}, of {with_claim[kind]} twins")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
