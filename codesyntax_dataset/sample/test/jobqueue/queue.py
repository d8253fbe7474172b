"""Queues of jobs with priorities, and the workers that empty them."""

from __future__ import annotations

import heapq
import itertools
import json
import logging
import threading
import time
import traceback
from dataclasses import dataclass, field
from typing import Any, Callable

log = logging.getLogger("jobqueue")


@dataclass
class Job:
    """Something to do later."""

    name: str
    run: Callable[[], Any]
    priority: int = 0
    retries: int = 0
    after: set[str] = field(default_factory=set)


class JobQueue:
    """Hands out jobs, the most urgent first, those of equal priority in order of arrival."""

    def __init__(self):
        """Begin with no jobs."""
        self._heap: list = []
        self._entries: dict[str, list] = {}
        self._counter = itertools.count()
        self._lock = threading.Lock()

    def put(self, job: Job) -> None:
        """Add a job; one of the same name that is still waiting is replaced."""
        with self._lock:
            old = self._entries.pop(job.name, None)
            if old is not None:
                old[-1] = None
            entry = [-job.priority, next(self._counter), job]
            self._entries[job.name] = entry
            heapq.heappush(self._heap, entry)

    def cancel(self, name: str) -> bool:
        """Take a waiting job out of the queue.

        The heap keeps a dead entry, which `get` passes over, because taking something out of
        the middle of a heap is slow.

        Returns:
            Whether there was such a job.
        """
        with self._lock:
            entry = self._entries.pop(name, None)
            if entry is None:
                return False
            entry[-1] = None
            return True

    def get(self) -> Job:
        """Remove and return the most urgent job.

        Raises:
            LookupError: If no job is waiting.
        """
        with self._lock:
            while self._heap:
                _, _, job = heapq.heappop(self._heap)
                if job is not None:
                    del self._entries[job.name]
                    return job
        raise LookupError("no job is waiting")

    def snapshot(self) -> list[str]:
        """List the names of the waiting jobs in the order in which they would run."""
        with self._lock:
            return [entry[-1].name for entry in sorted(self._heap, key=lambda e: e[:2]) if entry[-1] is not None]


def run_job(job: Job, clock=time.perf_counter) -> dict[str, Any]:
    """Run a job until it succeeds or its retries are used up.

    Args:
        job: What to run.
        clock: Returns seconds.

    Returns:
        A report with the keys `name`, `ok`, `attempts`, `seconds` and, after a failure,
        `error` with the last traceback.
    """
    started = clock()
    report: dict[str, Any] = {"name": job.name, "ok": False, "attempts": 0}
    while not report["ok"] and report["attempts"] <= job.retries:
        report["attempts"] += 1
        try:
            job.run()
        except Exception:
            report["error"] = traceback.format_exc()
            log.warning("job %s failed, attempt %d", job.name, report["attempts"], exc_info=True)
        else:
            report["ok"] = True
            report.pop("error", None)
        finally:
            report["seconds"] = clock() - started
    return report


def drain(queue: JobQueue, done: set[str] | None = None) -> list[dict[str, Any]]:
    """Run all jobs of a queue, none before the jobs that it comes after.

    Jobs that wait for one that failed or is not there are reported as blocked.

    Returns:
        One report per job, in the order in which they ended.
    """
    done = set() if done is None else done
    reports = []
    postponed = []
    while True:
        try:
            job = queue.get()
        except LookupError:
            break
        missing = job.after - done
        if missing:
            postponed.append((job, missing))
            continue
        report = run_job(job)
        reports.append(report)
        if report["ok"]:
            done.add(job.name)
            # What waited for this job gets another chance.
            for waiting, _ in postponed:
                queue.put(waiting)
            postponed.clear()
    for job, missing in postponed:
        reports.append({"name": job.name, "ok": False, "attempts": 0, "blocked_by": sorted(missing)})
    return reports


def save_reports(reports: list[dict[str, Any]], path: str) -> None:
    """Append reports to a file, one JSON document per line."""
    with open(path, "a", encoding="utf-8") as out:
        for report in reports:
            json.dump(report, out, sort_keys=True)
            out.write("\n")


class RateLimiter:
    """Allows a number of events per period, evenly refilled."""

    def __init__(self, rate: float, burst: int, clock=time.monotonic):
        """Allow `rate` events per second, and `burst` at once."""
        self.rate = rate
        self.burst = burst
        self.clock = clock
        self.tokens = float(burst)
        self.updated = clock()

    def try_acquire(self, amount: int = 1) -> bool:
        """Use up some of the allowance if there is enough of it."""
        now = self.clock()
        self.tokens = min(self.burst, self.tokens + (now - self.updated) * self.rate)
        self.updated = now
        if self.tokens < amount:
            return False
        self.tokens -= amount
        return True
