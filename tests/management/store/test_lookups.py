"""Selects that every request makes, in both databases."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import bindparam, event, select
from sqlalchemy.engine import URL

from caraway_core.errors import UnavailableError
from caraway_management import accounts
from caraway_management.store import lookups
from caraway_management.store.database import Database
from caraway_management.store.lookups import Lookup
from caraway_management.store.tables import Token, User

NOW = datetime(2026, 11, 26, 12, 30, 0, 250, tzinfo=UTC)
BY_NAME = Lookup(
    select(*User.__table__.columns).where(User.username == bindparam("name"), User.id > 0)
)
TOKENS = Lookup(
    select(Token.scopes, Token.expires_at, User.username.label("owner"))
    .join(User, User.id == Token.user_id)
    .where(Token.user_id == bindparam("user_id"))
    .order_by(Token.id)
    .limit(bindparam("limit"))
)


@contextlib.asynccontextmanager
async def opened(url: URL) -> AsyncIterator[Database]:
    database = Database(url)
    try:
        async with database.change() as session:
            user = await accounts.add_user(session, NOW, "ann", is_administrator=True)
            for expires_at in (None, NOW, None):
                await accounts.add_token(session, NOW, user, "t", expires_at=expires_at)
        yield database
    finally:
        await database.close()


def statements_of(database: Database) -> list[str]:
    """Return a list that statements of sessions are added to."""
    seen: list[str] = []

    @event.listens_for(database._reader.sync_engine, "before_cursor_execute")
    def note(_: Any, __: Any, sql: str, *rest: Any) -> None:
        seen.append(sql)

    return seen


async def test_a_row_has_what_a_session_would_read(prepared_url: URL) -> None:
    async with opened(prepared_url) as database:
        seen = statements_of(database)
        async with database.read() as session:
            found = await BY_NAME.one_or_none(session, name="ann")
            assert await BY_NAME.one_or_none(session, name="' OR 1=1 --") is None
            pairs = await TOKENS.rows(session, user_id=found.id, limit=2)
            assert not session.in_transaction()
        assert seen == []
        async with database.read() as session:
            user = (await session.scalars(select(User))).one()
            names = [column.key for column in User.__table__.columns]
            assert [getattr(found, name) for name in names] == [
                getattr(user, name) for name in names
            ]
            assert found.is_administrator is True
            tokens = (await session.scalars(select(Token).order_by(Token.id))).all()
        assert [(each.scopes, each.expires_at, each.owner) for each in pairs] == [
            (token.scopes, token.expires_at, "ann") for token in tokens[:2]
        ]
        assert pairs[1].expires_at == NOW


async def test_a_lookup_in_a_transaction_sees_it(prepared_url: URL) -> None:
    async with opened(prepared_url) as database:
        async with database.change() as session:
            await accounts.add_user(session, NOW, "ben")
            assert await BY_NAME.one_or_none(session, name="ben")
        seen = statements_of(database)
        async with database.read() as session:
            assert await session.scalar(select(User.id))
            assert await BY_NAME.one_or_none(session, name="ben")
        assert any("users" in each and "limit" not in each.lower() for each in seen)


async def test_lookups_wait_for_a_connection(prepared_url: URL) -> None:
    async with opened(prepared_url) as database:

        async def look() -> str:
            async with database.read() as session:
                name: str = (await BY_NAME.one_or_none(session, name="ann")).username
                return name

        assert await asyncio.gather(*(look() for _ in range(100))) == ["ann"] * 100
        pool: Any = database._reader.sync_engine.pool
        assert pool.checkedout() == 1  # The one that is kept.


async def test_a_kept_connection_that_was_idle_goes_back_to_the_pool(
    prepared_url: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(prepared_url) as database:
        pool: Any = database._reader.sync_engine.pool
        taken: list[object] = []
        event.listen(pool, "checkout", lambda *given: taken.append(given[0]))

        async def look() -> None:
            async with database.read() as session:
                assert await BY_NAME.one_or_none(session, name="ann")

        await look()
        await look()
        assert len(taken) == 1
        monkeypatch.setattr(lookups, "_KEPT_S", -1.0)
        await look()
        assert len(taken) == 2
    assert pool.checkedout() == 0


async def test_what_fails_in_the_driver_is_left_to_the_session(
    prepared_url: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(prepared_url) as database:

        async def fail(*_: Any) -> Any:
            raise ConnectionResetError

        seen = statements_of(database)
        monkeypatch.setattr(database._lookups, "_fetch", fail)
        async with database.read() as session:
            assert (await BY_NAME.one_or_none(session, name="ann")).username == "ann"
        assert len(seen) >= 1
        pool: Any = database._reader.sync_engine.pool
        assert pool.checkedout() == 0


async def test_a_lookup_that_is_cancelled_gives_its_connection_back(
    prepared_url: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(prepared_url) as database:

        async def cancelled(*_: Any) -> Any:
            raise asyncio.CancelledError

        monkeypatch.setattr(database._lookups, "_fetch", cancelled)
        with pytest.raises(asyncio.CancelledError):
            async with database.read() as session:
                await BY_NAME.one_or_none(session, name="ann")
        monkeypatch.undo()
        pool: Any = database._reader.sync_engine.pool
        assert pool.checkedout() == 0
        async with database.read() as session:
            assert await BY_NAME.one_or_none(session, name="ann")


async def test_a_database_that_is_away_is_unavailable() -> None:
    database = Database(URL.create("postgresql+asyncpg", "u", host="127.0.0.1", port=1))
    try:
        with pytest.raises(UnavailableError):
            async with database.read() as session:
                await BY_NAME.one_or_none(session, name="ann")
    finally:
        await database.close()
