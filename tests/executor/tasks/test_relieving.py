"""Which catalogs have engine processes of their own, and when these end."""

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from caraway_engine.execution.settings import EngineSettings
from caraway_executor.tasks import relieving
from caraway_executor.tasks.relieved import RelievedExecutor
from caraway_executor.tasks.relieving import Relieving
from tests.kit.clocks import Clock


class OwnCatalogs:
    """The catalogs of some origins; an origin gets another executor when a test says so."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}
        self.executors: dict[str, Any] = {}

    def install(self, origin: str) -> None:
        self.versions[origin] = self.versions.get(origin, 0) + 1
        self.executors[origin] = SimpleNamespace(
            session=SimpleNamespace(snapshot=f"{origin} {self.versions[origin]}")
        )

    def forget(self, origin: str) -> None:
        del self.versions[origin], self.executors[origin]

    def executor(self, origin: str) -> Any:
        return self.executors[origin]


class OwnPlaces:
    def __init__(self) -> None:
        self.lent: list[bool] = []

    def lend(self, *, are_lent: bool) -> None:
        self.lent.append(are_lent)


class FakeRelief:
    """Notes what is asked of the processes of a catalog."""

    all: ClassVar[list["FakeRelief"]] = []

    def __init__(self, *_: object) -> None:
        self.calls: list[str] = []
        self.all.append(self)

    def close(self) -> None:
        self.calls.append("close")

    def rest(self) -> None:
        self.calls.append("rest")

    def warm(self, snapshot: str) -> None:
        self.calls.append(f"warm {snapshot}")


class FakeForking:
    begun: ClassVar[list["FakeForking"]] = []
    failure: OSError | None = None

    def __init__(self, *_: object) -> None:
        if self.failure is not None:
            raise self.failure
        self.is_closed = False
        self.begun.append(self)

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeRelief, "all", [])
    monkeypatch.setattr(FakeForking, "begun", [])
    monkeypatch.setattr(FakeForking, "failure", None)
    monkeypatch.setattr(relieving, "Relief", FakeRelief)
    monkeypatch.setattr(relieving, "Forking", FakeForking)


def made(
    catalogs: OwnCatalogs, places: OwnPlaces | None = None, *, has_processes: bool = True
) -> Relieving:
    own_catalogs: Any = catalogs
    own_places: Any = places or OwnPlaces()
    settings = EngineSettings(target_partitions=1)
    return Relieving(settings, own_catalogs, own_places, Clock(), has_processes=has_processes)


async def test_a_catalog_keeps_its_processes_until_it_has_another_executor() -> None:
    catalogs = OwnCatalogs()
    catalogs.install("a")
    catalogs.install("b")
    own = made(catalogs)
    for origin in ("a", "b", "a"):
        assert isinstance(own.executor(origin), RelievedExecutor)
    assert [each.calls for each in FakeRelief.all] == [[], []]
    catalogs.install("a")
    own.executor("a")
    assert [each.calls for each in FakeRelief.all] == [["close"], [], []]


async def test_processes_end_with_the_catalog_of_their_scheduler() -> None:
    catalogs = OwnCatalogs()
    for origin in ("a", "b"):
        catalogs.install(origin)
    own = made(catalogs)
    for origin in ("a", "b"):
        own.executor(origin)
    catalogs.forget("a")
    own.tend()
    own.tend()
    assert [each.calls for each in FakeRelief.all] == [["rest", "close"], ["rest", "rest"]]


async def test_the_fork_server_starts_once_with_the_first_catalog() -> None:
    catalogs = OwnCatalogs()
    own = made(catalogs)
    own.tend()
    assert FakeForking.begun == []
    catalogs.install("a")
    own.tend()
    own.tend()
    (forking,) = FakeForking.begun
    own.executor("a")
    own.close()
    assert forking.is_closed and FakeRelief.all[0].calls == ["close"]


async def test_a_fork_server_that_cannot_start_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalogs = OwnCatalogs()
    catalogs.install("a")
    own = made(catalogs)
    monkeypatch.setattr(FakeForking, "failure", OSError("too many processes"))
    own.tend()
    assert FakeForking.begun == []
    monkeypatch.setattr(FakeForking, "failure", None)
    own.tend()
    assert len(FakeForking.begun) == 1


async def test_busy_threads_warm_processes_with_the_catalogs_of_now() -> None:
    catalogs = OwnCatalogs()
    catalogs.install("a")
    catalogs.install("b")
    catalogs.executors["b"].session = None
    own = made(catalogs)
    own.executor("a")
    own.executor("b")
    own.note_busy()
    assert [each.calls for each in FakeRelief.all] == [["warm a 1"], []]


async def test_slots_are_lent_while_the_threads_are_starved() -> None:
    places = OwnPlaces()
    own = made(OwnCatalogs(), places)
    own.note_starved(are_starved=True)
    own.note_starved(are_starved=False)
    assert places.lent == [True, False]


async def test_without_processes_all_work_stays() -> None:
    catalogs = OwnCatalogs()
    catalogs.install("a")
    own = made(catalogs, has_processes=False)
    assert own.executor("a") is catalogs.executors["a"]
    task: Any = SimpleNamespace(shares=(), work=None, catalog="a")
    assert not own.may_leave(task, ())
    own.tend()
    own.close()
    assert FakeRelief.all == [] and FakeForking.begun == []
