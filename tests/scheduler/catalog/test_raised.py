"""Every exception affects only its dataset, wherever it is raised, and is retried."""

import asyncio
import concurrent.futures
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from caraway_acceleration.accelerated import Accelerated
from caraway_acceleration.refresh import refreshing
from caraway_core.concurrency.backoff import Delays
from caraway_core.ids import ExecutorId, TableName
from caraway_engine.sessions.registered import Registered
from caraway_plugins.sources.files import LocalFiles
from caraway_scheduler.catalog import catalog
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from tests.kit.cluster_runtime import clustered
from tests.kit.deadlines import eventually
from tests.kit.in_process_fleet import InProcessFleet
from tests.kit.panics import Panic
from tests.kit.runtime import Running, running

WAIT_S = 60.0
SECRET = "/srv/secret/place/x.csv"
GOOD = TableName("good")


RAISED: Sequence[BaseException] = (
    TypeError("'NoneType' object is not subscriptable"),
    KeyError("x"),
    OSError(2, "No such file or directory", SECRET),
    AssertionError(),
    asyncio.CancelledError(),
    concurrent.futures.CancelledError(),
    StopIteration(),
    RecursionError("maximum recursion depth exceeded"),
    ExceptionGroup("two", [ValueError(SECRET), KeyError("y")]),
    BaseExceptionGroup("two", [Panic(SECRET)]),
    Panic(f"panicked at {SECRET}:12"),
)
ASYNCHRONOUS = tuple(each for each in RAISED if not isinstance(each, StopIteration))
"""Without StopIteration, which Python turns into RuntimeError in a coroutine."""
NAMES = [TableName(f"bad_{number}") for number in range(len(RAISED))]
LEAKS = re.compile(rf"Traceback|File \"|{SECRET}|\.py\b|NoneType|panicked|Errno|/tmp/|object at 0x")


def manifest(more: str = "") -> str:
    bad = "".join(f'  - {{from: "file:good.csv", name: {name}{more}}}\n' for name in NAMES)
    return f'\ndatasets:\n  - {{from: "file:good.csv", name: good}}\n{bad}'


class Haunt:
    """Raises the failure of each dataset while it is switched on."""

    def __init__(self) -> None:
        self.is_on = True
        self.raised = dict.fromkeys(NAMES, 0)

    def may_raise(self, name: TableName) -> None:
        if self.is_on and name in self.raised:
            self.raised[name] += 1
            raise RAISED[NAMES.index(name)].with_traceback(None)


@pytest.fixture
def haunt() -> Haunt:
    return Haunt()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "good.csv").write_text("a\n1\n")
    monkeypatch.setattr(catalog, "_DELAYS", Delays(0.05, 0.05))
    monkeypatch.setattr(refreshing, "DELAYS", Delays(0.05, 0.05))


Place = Callable[[pytest.MonkeyPatch, Haunt], None]


def in_source(method: str) -> Place:
    """Raise in a method of the source."""

    def place(patch: pytest.MonkeyPatch, haunt: Haunt) -> None:
        own = getattr(LocalFiles, method)

        def haunted(self: LocalFiles, request: Any) -> Any:
            haunt.may_raise(request.name)
            return own(self, request)

        patch.setattr(LocalFiles, method, haunted)

    return place


def in_begin(patch: pytest.MonkeyPatch, haunt: Haunt) -> None:
    """Raise when the accelerator starts a dataset."""
    own = Accelerated.__init__

    def haunted(self: Accelerated, *arguments: Any, **named: Any) -> None:
        for each in arguments:
            if (name := getattr(each, "name", None)) in NAMES:
                haunt.may_raise(name)
        own(self, *arguments, **named)

    patch.setattr(Accelerated, "__init__", haunted)


def in_source_loaded(patch: pytest.MonkeyPatch, haunt: Haunt) -> None:
    """Raise when the accelerator is notified that a source is loaded."""
    own = Accelerated.source_loaded

    def haunted(self: Accelerated) -> None:
        haunt.may_raise(self.plan.name)
        own(self)

    patch.setattr(Accelerated, "source_loaded", haunted)


def in_load(patch: pytest.MonkeyPatch, haunt: Haunt) -> None:
    """Raise when the executor loads the rows of a dataset."""
    own = InProcessDispatch.load

    async def haunted(self: InProcessDispatch, table: TableName, *arguments: Any) -> int:
        haunt.may_raise(table)
        return await own(self, table, *arguments)

    patch.setattr(InProcessDispatch, "load", haunted)


def in_table(patch: pytest.MonkeyPatch, haunt: Haunt) -> None:
    """Raise when an executor registers the table."""
    own = Registered._add_table

    def haunted(self: Registered, name: TableName, *arguments: Any) -> None:
        haunt.may_raise(name)
        own(self, name, *arguments)

    patch.setattr(Registered, "_add_table", haunted)


async def judged(runtime: Running, haunt: Haunt) -> None:
    """Check every dataset while its failure is raised, and afterwards."""
    states = runtime.services.catalog.datasets
    assert (await runtime.sql("SELECT a FROM good")).json() == [{"a": 1}]
    for name in NAMES:
        state = states[name]

        async def is_error(name: TableName = name) -> bool:
            return states[name].status == "error"

        await eventually(is_error, f"{RAISED[NAMES.index(name)]!r} is an error", WAIT_S)
        assert state.error is not None and state.error.message
        assert not LEAKS.search(state.error.message), state.error.message

        async def is_retried(name: TableName = name) -> bool:
            return haunt.raised[name] > 2

        await eventually(is_retried, f"{RAISED[NAMES.index(name)]!r} is tried again", WAIT_S)
    assert (await runtime.sql("SELECT a FROM good")).json() == [{"a": 1}]
    assert states[GOOD].status == "ready"
    haunt.is_on = False

    async def are_ready() -> bool:
        return {states[name].status for name in NAMES} == {"ready"}

    await eventually(are_ready, "what was mended is served", WAIT_S)
    for name in NAMES:
        assert (await runtime.sql(f"SELECT a FROM {name}")).json() == [{"a": 1}]


ACCELERATED = ", acceleration: {enabled: true}"
PLACES: Mapping[str, tuple[Place, str]] = {
    "resolve": (in_source("resolve"), ""),
    "fingerprint": (in_source("fingerprint"), ""),
    "resolve_accelerated": (in_source("resolve"), ACCELERATED),
    "begin": (in_begin, ACCELERATED),
    "source_loaded": (in_source_loaded, ACCELERATED),
    "load": (in_load, ACCELERATED),
}


@pytest.mark.parametrize("where", PLACES)
async def test_a_failure_stays_with_its_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, haunt: Haunt, where: str
) -> None:
    place, more = PLACES[where]
    place(monkeypatch, haunt)
    async with asyncio.timeout(3 * WAIT_S), running(tmp_path, manifest(more)) as runtime:
        await judged(runtime, haunt)


async def test_a_table_that_an_executor_cannot_register_is_an_error_of_its_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, haunt: Haunt
) -> None:
    in_table(monkeypatch, haunt)
    async with asyncio.timeout(3 * WAIT_S), clustered(tmp_path, manifest()) as cluster:
        assert await cluster.membership.wait_ready(2, WAIT_S)
        await judged(cluster.runtime, haunt)


@pytest.mark.parametrize("raised", ASYNCHRONOUS, ids=lambda each: type(each).__name__)
async def test_an_install_that_raises_is_retried_and_the_start_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    own, calls = InProcessDispatch.install, 0

    async def haunted(self: InProcessDispatch, snapshot: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls <= 3:
            raise raised.with_traceback(None)
        return await own(self, snapshot)

    monkeypatch.setattr(InProcessDispatch, "install", haunted)
    async with asyncio.timeout(WAIT_S), running(tmp_path, manifest()) as runtime:

        async def is_ready() -> bool:
            return runtime.services.catalog.datasets[GOOD].status == "ready"

        await eventually(is_ready, "the catalog is installed at last", WAIT_S)
        assert (await runtime.sql("SELECT a FROM good")).json() == [{"a": 1}]


@pytest.mark.parametrize("step", ["describe", "install", "probe"])
async def test_an_executor_that_raises_anything_is_called_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    own, left = getattr(InProcessFleet, step), list(ASYNCHRONOUS)

    async def haunted(self: InProcessFleet, *arguments: Any) -> Any:
        # One executor raises; the other one works.
        if left and (step == "describe" or arguments[0] == ExecutorId("e1")):
            raise left.pop(0)
        return await own(self, *arguments)

    monkeypatch.setattr(InProcessFleet, step, haunted)
    monkeypatch.setattr("caraway_scheduler.membership.state._DELAYS", Delays(0.01, 0.01))
    async with asyncio.timeout(3 * WAIT_S), clustered(tmp_path, manifest()) as cluster:
        assert await cluster.membership.wait_ready(2, WAIT_S)
        assert not left
        assert (await cluster.runtime.sql("SELECT a FROM good")).json() == [{"a": 1}]
