import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.engine import URL

from caraway_management.credentials import attempts
from caraway_management.domain.refusals import RefusedError
from caraway_management.store import migrations
from caraway_management.store.database import Database
from caraway_management.store.tables import Attempts
from tests.kit.management import BEGAN


@asynccontextmanager
async def opened(url: URL) -> AsyncIterator[Database]:
    database = Database(url)
    try:
        await migrations.upgrade(database)
        yield database
    finally:
        await database.close()


async def attempt(database: Database, limits: dict[str, int], **later: float) -> bool:
    try:
        async with database.change() as session:
            await attempts.count(session, BEGAN + timedelta(**later), limits)
    except RefusedError as exc:
        assert exc.status == 429
        return False
    return True


async def test_attempts_at_once_are_all_counted(database_url: URL) -> None:
    async with opened(database_url) as database:
        limits = {attempts.key("user", "ada"): 5, attempts.key("address", "10.0.0.1"): 100}
        done = await asyncio.gather(*(attempt(database, limits) for _ in range(12)))
        assert sorted(done) == [False] * 7 + [True] * 5


async def test_the_window_ends_and_right_attempts_are_taken_back(database_url: URL) -> None:
    async with opened(database_url) as database:
        limits, others = {attempts.key("user", "ada"): 1}, {attempts.key("user", "eve"): 1}
        assert await attempt(database, limits)
        assert not await attempt(database, limits, minutes=14)
        assert await attempt(database, others, minutes=14)
        assert await attempt(database, limits, minutes=15)
        assert not await attempt(database, limits, minutes=15)
        async with database.change() as session:
            await attempts.forgive(session, limits)
            await attempts.forgive(session, limits)
        assert await attempt(database, limits, minutes=15)
        assert not await attempt(database, others, minutes=15)


async def test_old_keys_are_forgotten(database_url: URL) -> None:
    async with opened(database_url) as database:
        for number in range(20):
            assert await attempt(database, {attempts.key("user", f"u{number}"): 5})
        assert await attempt(database, {attempts.key("user", "ada"): 5}, minutes=30)
        async with database.read() as session:
            assert await session.scalar(select(func.count()).select_from(Attempts)) == 1


def test_keys_are_bounded_and_say_nothing() -> None:
    long = attempts.key("user", "x" * 10_000)
    assert len(long) < 100 and "xxx" not in long
    assert attempts.key("pair", "a", "bc") != attempts.key("pair", "ab", "c")
    assert attempts.key("user", "\ud800").startswith("user:")
