"""Plugins of pytest for tests/faults/mutants.py: which tests execute a line, and running some tests within limits."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import coverage
import pytest

PATIENCE = 10
"""CPU seconds that a test may take beyond five times those it takes without a mutant."""


class Lines:
    """A plugin of pytest that tells what each test costs and executes.

    A context is a test, or a fixture that several tests share. `seconds`: context -> CPU time; `fixtures`: test that
    passes -> the fixtures it uses; `not passed`: test -> outcome; `lines`: module -> line -> contexts.
    """

    def __init__(self, folder: Path, modules: Sequence[str]):
        self.paths = {module: str(folder / module) for module in modules}
        self.within = [""]
        self.seconds: Counter[str] = Counter()
        self.fixtures: dict[str, list[str]] = {}
        self.not_passed: dict[str, str] = {}

    def told(self) -> dict[str, Any]:
        self.coverage.stop()
        lines = {
            module: self.coverage.get_data().contexts_by_lineno(path)
            for module, path in self.paths.items()
        }
        passed = {
            test: fixtures
            for test, fixtures in self.fixtures.items()
            if test not in self.not_passed
        }
        return {
            "seconds": self.seconds,
            "fixtures": passed,
            "not passed": self.not_passed,
            "lines": lines,
        }

    def pytest_configure(self) -> None:
        self.coverage = coverage.Coverage(data_file=None, include=list(self.paths.values()))
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        known = item._fixtureinfo.name2fixturedefs.values()
        self.fixtures[item.nodeid] = [_named(fixtures[-1]) for fixtures in known]
        with self._context(item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        alone = fixturedef.scope == "function"
        with self._context(self.within[-1] if alone else _named(fixturedef)):
            return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:  # a test that is skipped kills nothing, either
            self.not_passed[report.nodeid] = report.outcome

    @contextmanager
    def _context(self, name: str) -> Iterator[None]:
        self.coverage.switch_context(name)
        self.within.append(name)
        before = _cpu_seconds()
        yield
        spent = _cpu_seconds() - before
        self.within.pop()
        self.coverage.switch_context(self.within[-1])
        self.seconds[name] += spent
        self.seconds[self.within[-1]] -= spent


class Selection:
    """A plugin of pytest that runs some tests, in their order, and tells the first that fails, or the one that runs.

    `costs`: test -> CPU seconds that it takes without a mutant. The system ends the process if it takes far more.
    """

    def __init__(self, costs: dict[str, float], answer: Path):
        self.costs = costs
        self.order = {test: place for place, test in enumerate(costs)}
        self.answer = answer
        self.failed: str | None = None

    def told(self) -> dict[str, Any]:
        return {"by": self.failed}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order),
            key=lambda it: self.order[it.nodeid],
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        self.answer.write_text(json.dumps({"by": item.nodeid}))
        allowed = PATIENCE + 5 * self.costs[item.nodeid]
        resource.setrlimit(
            resource.RLIMIT_CPU, (int(time.process_time() + allowed), resource.RLIM_INFINITY)
        )
        signal.alarm(int(10 * allowed))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid


def _named(fixture: Any) -> str:
    """Other modules have others of its name."""
    return f"fixture {fixture.argname} of {fixture.baseid}"


def _cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    return sum(os.times()[:4])
