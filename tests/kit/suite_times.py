"""A pytest plugin that prints the time spent per suite at the end of a run, also under xdist.

Processor seconds are those of the worker and of child processes that ended during a test. They
bound a run: more workers than cores make up for waits.
"""

import resource
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from pathlib import PurePosixPath

import pytest

_MODULES_SHOWN = 20
_PROCESSOR_S = "processor_s"


class SuiteTimes:
    """Adds up how long setup, call and teardown of the tests of each suite took."""

    def __init__(self, modules_shown: int = _MODULES_SHOWN) -> None:
        self._modules_shown = modules_shown
        self._tests: Counter[str] = Counter()
        self._by_suite: dict[str, float] = {}
        self._by_module: dict[str, float] = {}
        self._processor_s: dict[str, float] = {}
        self._counted_s = 0.0

    def pytest_runtest_logstart(self) -> None:
        self._counted_s = processor_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the processor seconds since the report before; workers send them with it."""
        report = yield
        before, self._counted_s = self._counted_s, processor_s()
        report.user_properties.append((_PROCESSOR_S, self._counted_s - before))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a phase of a test; under xdist the controller gets the reports of its workers."""
        module = report.nodeid.split("::")[0]
        suite = suite_of(module)
        self._tests[suite] += report.when == "setup"
        self._by_suite[suite] = self._by_suite.get(suite, 0.0) + report.duration
        self._by_module[module] = self._by_module.get(module, 0.0) + report.duration
        for name, seconds in report.user_properties:
            if name == _PROCESSOR_S and isinstance(seconds, float):
                for place in (suite, module):
                    self._processor_s[place] = self._cpu_s(place) + seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._by_suite:
            return
        terminalreporter.section("time per suite")
        for line in self.lines():
            terminalreporter.write_line(line)

    def lines(self) -> Iterator[str]:
        """Yield the table of all suites, then that of the longest modules; longest first."""
        yield f"{'seconds':>8} {'cpu':>8} {'tests':>6}  suite"
        for suite, seconds in _longest(self._by_suite):
            yield f"{seconds:8.1f} {self._cpu_s(suite):8.1f} {self._tests[suite]:6}  {suite}"
        total, cpu_s = sum(self._by_suite.values()), sum(map(self._cpu_s, self._by_suite))
        yield f"{total:8.1f} {cpu_s:8.1f} {self._tests.total():6}  in all"
        yield f"{'seconds':>8} {'cpu':>8}  module"
        for module, seconds in _longest(self._by_module)[: self._modules_shown]:
            yield f"{seconds:8.1f} {self._cpu_s(module):8.1f}  {module}"

    def _cpu_s(self, name: str) -> float:
        return self._processor_s.get(name, 0.0)


def processor_s() -> float:
    """Return the processor seconds of this process and of its children that ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def suite_of(module: str) -> str:
    """Return the folder of a module, at most two below `tests`."""
    return "/".join(PurePosixPath(module).parent.parts[:3])


def _longest(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: (-item[1], item[0]))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--modules-shown", type=int, default=_MODULES_SHOWN)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SuiteTimes(config.getoption("--modules-shown")))
