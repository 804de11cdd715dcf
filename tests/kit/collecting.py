"""A pytest plugin that makes it cheap to collect thousands of tests in several workers of xdist.

Every worker imports all test modules. To rewrite their assertions takes longer than to import
modules that were rewritten before, so each worker begins with other folders and finds the rest in
the cache of bytecode. The garbage collector rests meanwhile. Then all loaded objects are hidden
from it, and after each module those that its tests have left. Otherwise it would visit a million
objects, for a second, each time that a test calls it.

Hypothesis would also parse all modules in each worker, to draw one value in twenty from their
constants. It does so where tests run in one process, as in `make test-full`.
"""

import gc
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest
from hypothesis.internal.conjecture import providers

from caraway_core.loading.imports import uncollected


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Have a worker begin with folders of its own, where all tests are collected."""
    worker: dict[str, str] = getattr(config, "workerinput", {})
    if worker:
        _draw_without_constants_of_source()
    if worker and config.args_source is config.ArgsSource.TESTPATHS:
        entries = [each for path in config.args for each in sorted(Path(path).iterdir())]
        # Paths that are named are collected even if they are to be ignored.
        ignored = {Path(each).resolve() for each in config.getoption("ignore") or ()}
        tests = [
            str(each) for each in entries if _holds_tests(each) and each.resolve() not in ignored
        ]
        place = int(worker["workerid"].removeprefix("gw")) / int(worker["workercount"])
        config.args = rotated(tests, place)


def _draw_without_constants_of_source() -> None:
    vars(providers).update(is_local_module_file=lambda _: False)


def _holds_tests(path: Path) -> bool:
    return path.match("test_*.py") or (path.is_dir() and not path.name.startswith("__"))


def rotated(entries: Sequence[str], place: float) -> list[str]:
    """Return the entries from a place between 0 and 1 on, and then those before it."""
    first = int(len(entries) * place)
    return [*entries[first:], *entries[:first]]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    with uncollected():
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Let what the tests of a module have imported and cached be no work for those that follow."""
    if nextitem is None or nextitem.path != item.path:
        _forget()


def _forget() -> None:
    gc.collect()
    gc.freeze()
