"""Selects that every request makes: compiled once, and run by the driver itself.

Between a session and the driver most of the time of such a select is spent: SQLite itself takes
some microseconds.
"""

import time
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Dialect, Select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.util import greenlet_spawn

_KEPT_S = 1.0
RUNNER = "lookups"
"""Where the information of a session has what runs lookups."""


class Lookup:
    """A select of columns. Its parameters are texts and numbers."""

    def __init__(self, statement: Select[*tuple[object, ...]]) -> None:
        self.statement = statement
        self._compiled: dict[str, _Compiled] = {}

    async def rows(self, session: AsyncSession, **values: str | int) -> Sequence[Any]:
        """Return the rows; in a transaction, as it sees them."""
        runner: LookupRunner | None = session.info.get(RUNNER)
        if runner is not None and not session.in_transaction():
            try:
                return await runner.run_lookup(self, values)
            except SQLAlchemyError:
                raise
            except Exception:  # noqa: BLE001 -- the session translates it
                pass
        found: Sequence[Any] = (await session.execute(self.statement, values)).all()
        return found

    async def one_or_none(self, session: AsyncSession, **values: str | int) -> Any:
        """Return the only row, or None; in a transaction, as it sees it."""
        rows = await self.rows(session, **values)
        assert len(rows) < 2, "a lookup is by a key"
        return rows[0] if rows else None

    def compiled(self, dialect: Dialect) -> "_Compiled":
        """Return the statement as a database reads it."""
        found = self._compiled.get(dialect.name)
        if found is None:
            found = self._compiled[dialect.name] = _Compiled(self.statement, dialect)
        return found


class LookupRunner:
    """Runs lookups over the connections of an engine, each outside of any transaction.

    The connection that was used last is kept for a moment: to take it from the pool and to give it
    back takes longer than a lookup.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._pool = engine.sync_engine.pool
        self._dialect = engine.sync_engine.dialect
        self._fetch = _fetch_sqlite if self._dialect.name == "sqlite" else _fetch_postgresql
        self._kept: PoolProxiedConnection | None = None
        self._kept_at = 0.0

    async def run_lookup(self, lookup: Lookup, values: Mapping[str, str | int]) -> Sequence[object]:
        """Return the rows. Errors are those of the driver."""
        compiled = lookup.compiled(self._dialect)
        connection = self._take_kept()
        if connection is None:
            connection = await greenlet_spawn(self._pool.connect)
        try:
            found = await self._fetch(connection, compiled.sql, compiled.arguments(values))
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        self._give_back(connection)
        return [compiled.row(each) for each in found]

    def close(self) -> None:
        """Give the kept connection back."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _take_kept(self) -> PoolProxiedConnection | None:
        kept, self._kept = self._kept, None
        if kept is not None and time.monotonic() - self._kept_at > _KEPT_S:
            # The pool checks it first.
            kept.close()
            return None
        return kept

    def _give_back(self, connection: PoolProxiedConnection) -> None:
        if self._kept is None:
            self._kept, self._kept_at = connection, time.monotonic()
        else:
            connection.close()


class _Compiled:
    def __init__(self, statement: Select[*tuple[object, ...]], dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        columns = statement.selected_columns
        self.sql = str(compiled)
        self._constants = dict(compiled.params)
        self._order = tuple(compiled.positiontup or ())
        self._make: Callable[..., object] = namedtuple("Row", [each.key for each in columns])  # type: ignore[misc]
        readers = [
            each.type.dialect_impl(dialect).result_processor(dialect, None) for each in columns
        ]
        self._readers = [(at, reader) for at, reader in enumerate(readers) if reader is not None]

    def arguments(self, values: Mapping[str, str | int]) -> list[object]:
        """Return the parameters in their order."""
        given = {**self._constants, **values}
        return [given[name] for name in self._order]

    def row(self, found: Sequence[object]) -> Any:
        """Return a row with the values that the types of its columns make."""
        values = list(found)
        for at, reader in self._readers:
            values[at] = reader(values[at])
        return self._make(*values)


async def _fetch_sqlite(
    connection: Any, sql: str, arguments: Sequence[object]
) -> Sequence[Sequence[object]]:
    # A statement that is not quick waits for a thread.
    run = connection.cursor().execute
    return (await greenlet_spawn(run, sql, arguments)).fetchall()  # type: ignore[no-any-return]


async def _fetch_postgresql(
    connection: Any, sql: str, arguments: Sequence[object]
) -> Sequence[Sequence[object]]:
    rows: Sequence[Sequence[object]] = await connection.driver_connection.fetch(sql, *arguments)
    return rows
