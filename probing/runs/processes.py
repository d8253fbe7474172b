"""The processes of one run: a single one, or those of `accelerate launch` or `torchrun`."""

from __future__ import annotations

from typing import Any


class Processes:
    """The processes that share a run, of which this is the one of a `rank`.

    Here a single one, which is all of them; others are in `probing.runs.distributed`. `device`:
    that of this process, if it has one of its own.
    """

    count, rank = 1, 0
    device: str | None = None

    @property
    def main(self) -> bool:
        return self.rank == 0

    def wait(self) -> None:
        """Wait for all processes."""

    def share(self, value: Any) -> Any:
        """The value of the main process, on all processes."""
        return value

    def send(self, value: Any) -> None:
        """Send a value to the main process, which must `receive` it."""
        raise NotImplementedError

    def receive(self, source: int) -> Any:
        """The next value that the process of this rank sends."""
        raise NotImplementedError
