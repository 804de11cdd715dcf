"""Writes that no response waits for."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import func, select
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_core.errors import UnavailableError
from caraway_management.store.database import Database
from caraway_management.store.later import LaterWrites, Write
from caraway_management.store.tables import Lease

NOW = datetime(2026, 11, 26, tzinfo=UTC)


@contextlib.asynccontextmanager
async def opened(url: URL) -> AsyncIterator[Database]:
    database = Database(url)
    try:
        yield database
    finally:
        await database.close()


def adding(name: str) -> Write:
    async def write(session: AsyncSession) -> None:
        session.add(Lease(name=name, owner="test", until=NOW))

    return write


async def written(database: Database) -> int:
    async with database.read() as session:
        return await session.scalar(select(func.count()).select_from(Lease)) or 0


async def test_a_group_is_one_transaction_and_is_written_before_the_database_is_closed(
    prepared_url: URL,
) -> None:
    first, changes = Database(prepared_url), 0
    change = first.change

    def counted() -> object:
        nonlocal changes
        changes += 1
        return change()

    first.later._change = counted  # type: ignore[assignment]
    for each in range(100):
        first.later.add(adding(str(each)))
    await first.close()
    second = Database(prepared_url)
    assert await written(second) == 100
    assert changes == 1
    await second.close()


async def test_writes_wait_while_the_database_is_away_and_their_number_is_bounded(
    prepared_url: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(prepared_url) as database:
        monkeypatch.setattr("caraway_management.store.later._AGAIN_S", 0.0)
        is_away, tried = True, asyncio.Event()

        def change() -> object:
            if is_away:
                tried.set()
                raise UnavailableError("the database does not respond", 5)
            return database.change()

        later = LaterWrites(change, most=2)  # type: ignore[arg-type]
        later.add(adding("a"))
        later.check_room()
        later.add(adding("b"))
        await tried.wait()
        with pytest.raises(UnavailableError, match="2 records wait"):
            later.check_room()
        is_away = False
        await later.aclose()
        assert await written(database) == 2


async def test_a_write_that_fails_does_not_stop_those_after_it(prepared_url: URL) -> None:
    async with opened(prepared_url) as database:

        async def fail(session: AsyncSession) -> None:
            raise ValueError("a bug")

        database.later.add(fail)
        await database.later.written()
        database.later.add(adding("a"))
        await database.later.written()
        assert await written(database) == 1


async def test_a_key_that_waits_is_not_written_again(prepared_url: URL) -> None:
    async with opened(prepared_url) as database:
        for _ in range(3):
            database.later.add_once("a", adding("a"))
        await database.later.written()
        assert await written(database) == 1


async def test_a_record_that_fails_takes_no_other_of_its_group_with_it(prepared_url: URL) -> None:
    async with opened(prepared_url) as database:
        for name in ("a", "b", "b", "c"):
            database.later.add(adding(name))
        await database.later.written()
        assert await written(database) == 3
        database.later.add(adding("d"))
        await database.later.written()
        assert await written(database) == 4


async def test_writes_of_a_moment_are_one_transaction(
    prepared_url: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caraway_management.store.later._GATHER_S", 60.0)
    async with opened(prepared_url) as database:
        changes, change = 0, database.change

        def counted() -> object:
            nonlocal changes
            changes += 1
            return change()

        database.later._change = counted  # type: ignore[assignment]
        await database.later.written()
        for each in range(3):
            database.later.add(adding(str(each)))
            await asyncio.sleep(0)
        assert await written(database) == changes == 0
        await database.later.written()
        assert (await written(database), changes) == (3, 1)
