"""Leases: one owner at a time, also of those that take one at the same moment."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from sqlalchemy.engine import URL

from caraway_management.monitoring import leases
from caraway_management.store.database import Database

NOW = datetime(2024, 1, 1, tzinfo=UTC)


@asynccontextmanager
async def opened(url: URL) -> AsyncIterator[Database]:
    made = Database(url)
    yield made
    await made.close()


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


async def test_a_lease_is_that_of_one_owner_until_it_ends(prepared_url: URL) -> None:
    async with opened(prepared_url) as database:
        assert await leases.take(database, NOW, "work", "one", 10)
        assert not await leases.take(database, later(9.9), "work", "two", 10)
        assert await leases.take(database, later(9.9), "work", "one", 10)
        assert not await leases.take(database, later(19.8), "work", "two", 10)
        assert await leases.take(database, later(19.9), "work", "two", 10)
        assert not await leases.take(database, later(20), "work", "one", 10)


async def test_leases_of_other_names_are_free(prepared_url: URL) -> None:
    async with opened(prepared_url) as database:
        assert await leases.take(database, NOW, "work", "one", 10)
        assert await leases.take(database, NOW, "other work", "two", 10)


async def test_only_one_of_many_takes_a_lease_at_once(prepared_url: URL) -> None:
    async with opened(prepared_url) as database:
        found = await asyncio.gather(
            *(leases.take(database, NOW, "work", str(number), 10) for number in range(8))
        )
        assert found.count(True) == 1


async def test_a_lease_that_was_never_taken_is_not_renewed(prepared_url: URL) -> None:
    async with opened(prepared_url) as database:
        async with database.change() as session:
            assert not await leases.renew(session, NOW, "work", "one", 10)
        assert await leases.take(database, NOW, "work", "one", 10)
        async with database.change() as session:
            assert await leases.renew(session, later(5), "work", "one", 10)
            assert not await leases.renew(session, later(5), "work", "two", 10)
