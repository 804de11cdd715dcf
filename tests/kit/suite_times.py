"""A pytest plugin that prints the time spent per suite at the end of a run, also under xdist."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

import pytest

_MODULES_SHOWN = 20


class SuiteTimes:
    """Adds up how long setup, call and teardown of the tests of each suite took."""

    def __init__(self) -> None:
        self._tests: Counter[str] = Counter()
        self._by_suite: dict[str, float] = {}
        self._by_module: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a phase of a test; under xdist the controller gets the reports of its workers."""
        module = report.nodeid.split("::")[0]
        suite = suite_of(module)
        self._tests[suite] += report.when == "setup"
        self._by_suite[suite] = self._by_suite.get(suite, 0.0) + report.duration
        self._by_module[module] = self._by_module.get(module, 0.0) + report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._by_suite:
            return
        terminalreporter.section("time per suite")
        for line in self.lines():
            terminalreporter.write_line(line)

    def lines(self) -> Iterator[str]:
        """Yield the table of all suites, then that of the longest modules; longest first."""
        yield f"{'seconds':>8} {'tests':>6}  suite"
        for suite, seconds in _longest(self._by_suite):
            yield f"{seconds:8.1f} {self._tests[suite]:6}  {suite}"
        total = sum(self._by_suite.values())
        yield f"{total:8.1f} {self._tests.total():6}  in all"
        yield f"{'seconds':>8}  module"
        for module, seconds in _longest(self._by_module)[:_MODULES_SHOWN]:
            yield f"{seconds:8.1f}  {module}"


def suite_of(module: str) -> str:
    """Return the folder of a module, at most two below `tests`."""
    return "/".join(PurePosixPath(module).parent.parts[:3])


def _longest(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: (-item[1], item[0]))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SuiteTimes())
