"""The Hub's own list of results for a dataset, and which of them have evidence on a board."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from huggingface_hub import HfApi

from codesyntax_dataset.errors import HubError
from codesyntax_dataset.network import limit_waiting, within
from codesyntax_dataset.safe_files import printable
from probing.publish.client import check_repo, plain_errors
from probing.publish.tables import BoardRow, task_values

MOST = 10_000
"""The most results, and the most benchmarks, that are read."""

_LONGEST = 300  # seconds

_ROUNDED = 0.005


class HubResult(NamedTuple):
    """A result of `model` that the Hub lists: `value` as somebody sent it; `badge`: whether the Hub's own jobs computed
    it; `notes`: ours begin with a signature; `row`: the model's row of the board with that signature, None without
    one."""

    rank: int
    model: str
    value: float
    badge: bool
    notes: str
    row: BoardRow | None

    @property
    def agrees(self) -> bool:
        """True if the row sends this value as the result of a task."""
        return self.row is not None and any(
            abs(value - self.value) < _ROUNDED for value in task_values(self.row.scores)
        )


def hub_results(dataset: str, rows: Iterable[BoardRow]) -> list[HubResult]:
    """The results that the Hub lists for `dataset`, in its order, beside the `rows` of a board.

    Raises HubError for a dataset that is not on the Hub's list of benchmarks, and if the Hub cannot be reached.
    """
    check_repo(dataset)
    limit_waiting()
    known = {(row.model.lower(), row.entry.signature): row for row in rows}
    api = HfApi()
    with plain_errors(dataset), within(_LONGEST):
        benchmarks = {info.id for info in islice(api.list_datasets(benchmark=True), MOST)}
        if dataset not in benchmarks:
            raise HubError(
                f"the Hub does not list {dataset} among its {len(benchmarks)} benchmarks, so it has no leaderboard: "
                "leave out --benchmark, or ask the Hub to list it"
            )
        listed = api.get_dataset_leaderboard(dataset, base_model_only=False)[:MOST]
        return [
            HubResult(
                int(one.rank),
                printable(str(one.model_id)),
                _value(dataset, one.value),
                one.verified is True,
                printable(notes := str(one.notes or "")),
                known.get((str(one.model_id).lower(), notes.partition(";")[0])),
            )
            for one in listed
        ]


def _value(dataset: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise HubError(f"the Hub lists {printable(str(value))[:40]!r} as a result on {dataset}, expected a number")
    return float(value)
