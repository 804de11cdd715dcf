"""The connections of the embedded database."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import URL
from sqlalchemy.exc import IntegrityError

from caraway_management.store import sqlite
from caraway_management.store.database import Database
from tests.kit import management

_LONG = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :most)
SELECT count(*), :most FROM n"""


@pytest.fixture
def url(tmp_path: Path) -> URL:
    return management.prepared_embedded_url(tmp_path)


@contextlib.asynccontextmanager
async def opened(url: URL) -> AsyncIterator[Database]:
    database = Database(url)
    try:
        yield database
    finally:
        await database.close()


@pytest.fixture
def threads_used(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads in which statements run."""
    used: list[str] = []
    run = sqlite._Cursor._run

    def noted(self: sqlite._Cursor, sql: str, parameters: object) -> None:
        if not sql.startswith(("BEGIN", "PRAGMA")):
            used.append(threading.current_thread().name)
        run(self, sql, parameters)

    monkeypatch.setattr(sqlite._Cursor, "_run", noted)
    return used


async def test_a_quick_statement_reads_on_the_loop_and_a_change_in_a_thread(
    url: URL, threads_used: list[str]
) -> None:
    async with opened(url) as database:
        async with database.read() as session:
            assert await session.scalar(text("SELECT 1")) == 1
        async with database.change() as session:
            await session.execute(text("SELECT 1"))
        loop, other = threads_used
        assert loop == threading.current_thread().name != other


async def test_a_long_statement_is_begun_again_in_a_thread_while_the_loop_goes_on(
    url: URL, threads_used: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(url) as database:
        monkeypatch.setattr(sqlite, "_QUICK_S", 0.0)
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        turning = asyncio.ensure_future(turn())
        async with database.read() as session:
            found = (await session.execute(text(_LONG), {"most": 300_000})).one()
        turning.cancel()
        assert tuple(found) == (300_000, 300_000)
        assert threads_used[0] == threading.current_thread().name != threads_used[1]
        assert turns > 1


@pytest.mark.parametrize("changes", [False, True])
async def test_a_statement_ends_with_the_task_that_waits_for_it(
    url: URL, changes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(url) as database:
        monkeypatch.setattr(sqlite, "_QUICK_S", 0.0)
        has_begun = asyncio.Event()
        in_thread = sqlite._Connection.in_thread

        def noted(self: sqlite._Connection, work: object) -> object:
            has_begun.set()
            return in_thread(self, work)  # type: ignore[arg-type]

        monkeypatch.setattr(sqlite._Connection, "in_thread", noted)

        async def run() -> None:
            async with database.change() if changes else database.read() as session:
                await session.execute(text(_LONG), {"most": 10**12})

        running = asyncio.ensure_future(run())
        await has_begun.wait()
        while not running.done():
            running.cancel()
            await asyncio.sleep(0)
        assert running.cancelled()
        # Its connection can be used again, and holds no lock.
        async with database.change() as session:
            assert await session.scalar(text("SELECT 1")) == 1


async def test_rows_are_given_in_parts(url: URL) -> None:
    async with opened(url) as database:
        query = text("SELECT 1 AS i UNION ALL SELECT 2 UNION ALL SELECT 3 ORDER BY i")
        async with database.read() as session:
            result = await session.execute(query)
            assert [*map(tuple, result.fetchmany(2))] == [(1,), (2,)]
            assert [*map(tuple, result.fetchmany(2))] == [(3,)]
            assert result.fetchone() is None


async def test_a_refused_change_is_rolled_back(url: URL) -> None:
    async with opened(url) as database:
        insert = text("INSERT INTO leases (name, owner, until) VALUES (:name, 'a', 0)")
        with pytest.raises(IntegrityError):
            async with database.change() as session:
                await session.execute(insert, [{"name": "a"}, {"name": "b"}])
                await session.execute(insert, {"name": "a"})
        async with database.read() as session:
            assert await session.scalar(text("SELECT count(*) FROM leases")) == 0
