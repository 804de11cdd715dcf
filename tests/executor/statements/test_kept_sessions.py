"""Sessions of catalogs: only the newest, and those that statements need, are kept."""

import asyncio
import gc
import weakref
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from caraway_core.errors import CatalogMovedError, ShuttingDownError
from caraway_core.ids import CatalogVersion, TableName
from caraway_core.protocols.fleet import Pinned
from caraway_core.statements import Statement
from caraway_core.tables import TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.sessions.sessions import Session
from caraway_executor.statements.kept_sessions import KeptSessions
from tests.kit.engine import memory, rows, snapshot
from tests.kit.stored import stored

SETTINGS = EngineSettings(2, None)
T = TableName("t")


def sessions() -> KeptSessions:
    return KeptSessions(lambda found: Session(SETTINGS, found), 2)


def prepared(
    kept: KeptSessions, version: int, **tables: TableSpec | str
) -> Mapping[TableName, str]:
    made = snapshot(tables or {"t": memory(v=[version])}, version=version)
    return kept.prepare(made, (), lambda _name: None)


def install(kept: KeptSessions, *versions: int) -> None:
    for version in versions:
        assert prepared(kept, version) == {}
        kept.publish()


def statement(version: int | None) -> Statement:
    return Statement("SELECT v FROM t", {}, catalog_version=CatalogVersion(version)
                     if version is not None else None)  # fmt: skip


async def test_without_a_catalog_there_is_no_session() -> None:
    kept = sessions()
    with pytest.raises(ShuttingDownError, match="no catalog yet"):
        kept.current()
    with pytest.raises(ShuttingDownError):
        await kept.session_of(statement(None))
    with pytest.raises(CatalogMovedError):
        await kept.session_of(statement(1))
    kept.publish()
    kept.release(None)
    assert kept.newest is None and kept.kept == () and kept.prepared_views == {}


async def test_a_prepared_catalog_is_seen_after_it_is_published() -> None:
    kept = sessions()
    install(kept, 1)
    assert prepared(kept, 2) == {}
    assert await rows(kept.current(), "SELECT v FROM t") == [{"v": 1}]
    assert list(kept.kept) == [1]
    kept.publish()
    assert await rows(kept.current(), "SELECT v FROM t") == [{"v": 2}]
    kept.publish()
    assert list(kept.kept) == [1, 2]


async def test_only_the_catalog_that_was_prepared_last_is_published() -> None:
    kept = sessions()
    prepared(kept, 1)
    prepared(kept, 2)
    kept.publish()
    assert kept.kept == (CatalogVersion(2),)


async def test_a_statement_keeps_the_catalog_that_it_names() -> None:
    kept = sessions()
    install(kept, 1, 2, 3)
    for version in (1, 2, 3):
        session = await kept.session_of(statement(version))
        assert await rows(session, "SELECT v FROM t") == [{"v": version}]
    assert await rows(await kept.session_of(statement(None)), "SELECT v FROM t") == [{"v": 3}]


async def test_a_released_catalog_is_moved_and_named() -> None:
    kept = sessions()
    install(kept, 1, 2)
    kept.release(None)
    assert kept.kept == (CatalogVersion(2),)
    with pytest.raises(CatalogMovedError) as caught:
        await kept.over(CatalogVersion(1))
    assert "1" in caught.value.message


async def test_a_table_that_fails_is_named_and_the_others_are_there() -> None:
    kept = sessions()
    failed = prepared(
        kept, 1, t=memory(v=[1]), broken="SELECT nothing FROM t", good="SELECT * FROM t"
    )
    assert set(failed) == {TableName("broken")} and "nothing" in failed[TableName("broken")]
    assert set(kept.prepared_views) == {TableName("good")}
    kept.publish()
    assert await rows(kept.current(), "SELECT v FROM good") == [{"v": 1}]
    assert kept.prepared_views == {}


async def test_a_cleared_store_holds_no_session(tmp_path: Path) -> None:
    kept = sessions()
    install(kept, 1)
    prepared(kept, 2)
    seen = [weakref.ref(kept.current())]
    kept.clear()
    gc.collect()
    assert [each() for each in seen] == [None]
    # A session that was prepared before is not published afterwards.
    kept.publish()
    assert kept.newest is None and kept.kept == ()
    with pytest.raises(ShuttingDownError):
        kept.current()


async def test_an_earlier_session_without_rows_in_memory_stays(tmp_path: Path) -> None:
    kept = sessions()
    install(kept, 1)
    first = kept.current()
    install(kept, 2)
    assert await kept.over(CatalogVersion(1)) is first


async def test_a_session_that_was_freed_is_built_again(tmp_path: Path) -> None:
    kept = sessions()
    install(kept, 1, 2)
    found = kept._kept[CatalogVersion(1)]
    found._held = None
    gc.collect()
    assert found.session() is None
    one, other = await asyncio.gather(kept.over(CatalogVersion(1)), kept.over(CatalogVersion(1)))
    for session in (one, other):
        assert session.snapshot.version == CatalogVersion(1)
        assert await rows(session, "SELECT v FROM t") == [{"v": 1}]
    assert await kept.over(CatalogVersion(1)) in (one, other)


async def test_a_version_that_is_loaded_twice_at_once_is_one_object(tmp_path: Path) -> None:
    kept = sessions()
    install(kept, 1)
    spec = await stored(tmp_path, pa.table({"v": [1, 2]}))
    one = kept.version_of(T, spec)
    assert kept.version_of(T, spec) is one
    other = await stored(tmp_path, pa.table({"v": [3]}), key="other")
    assert kept.version_of(T, other) is not one
    kept.keep_loaded(T, one)
    assert kept.version_of(T, spec) is one


async def test_a_version_that_nobody_keeps_is_freed(tmp_path: Path) -> None:
    kept = sessions()
    spec = await stored(tmp_path, pa.table({"v": [1, 2]}))
    seen = weakref.ref(kept.version_of(T, spec))
    gc.collect()
    assert seen() is None
    held = kept.version_of(T, spec)
    kept.keep_loaded(T, held)
    seen = weakref.ref(held)
    del held
    gc.collect()
    assert seen() is not None
    kept.clear()
    gc.collect()
    assert seen() is None


class Catalogs(RuleBasedStateMachine):
    """Against plain sets: which versions statements can run over, and which is the newest."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = sessions()
        self.next = 1
        self.waiting: int | None = None
        self.newest: int | None = None
        self.expected: set[int] = set()

    @rule()
    def prepare(self) -> None:
        assert prepared(self.kept, self.next) == {}
        self.waiting, self.next = self.next, self.next + 1

    @rule()
    def publish(self) -> None:
        self.kept.publish()
        if self.waiting is not None:
            self.newest, self.waiting = self.waiting, None
            self.expected.add(self.newest)

    @rule(needed=st.sets(st.integers(1, 12)), until=st.integers(0, 12))
    def release(self, needed: set[int], until: int) -> None:
        pinned = Pinned(CatalogVersion(until), frozenset(map(CatalogVersion, needed)))
        self.kept.release(pinned)
        self.expected = {
            version
            for version in self.expected
            if version == self.newest or pinned.needs(CatalogVersion(version))
        }

    @rule()
    def release_all(self) -> None:
        self.kept.release(None)
        self.expected &= {self.newest} if self.newest else set()

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def loosen(self, data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(sorted(self.expected)))
        self.kept.loosen(CatalogVersion(version))

    @rule()
    def clear(self) -> None:
        self.kept.clear()
        self.waiting = self.newest = None
        self.expected = set()

    @invariant()
    def has_what_is_expected(self) -> None:
        assert set(self.kept.kept) == self.expected
        newest = self.kept.newest
        assert (newest and newest.snapshot.version) == self.newest

    @invariant()
    def every_kept_version_has_its_rows(self) -> None:
        async def check() -> None:
            for version in self.expected:
                session = await self.kept.over(CatalogVersion(version))
                assert session.snapshot.version == version

        asyncio.run(check())


TestCatalogs = Catalogs.TestCase
TestCatalogs.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)
