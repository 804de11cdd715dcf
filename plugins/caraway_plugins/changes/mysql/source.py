"""A table of MariaDB as a change source: a snapshot of its rows, then its binary log."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice

import pyarrow as pa
import pymysql

from caraway_core.changes import Changes, Op, joined
from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import ChangeRequest, SourceBatch
from caraway_plugins.changes.mysql import collecting, looking, positions
from caraway_plugins.changes.mysql.looking import FollowedTable
from caraway_plugins.changes.mysql.positions import MysqlPosition
from caraway_plugins.changes.mysql.streaming import BinaryLog, LoggedChanges, LogLimits
from caraway_plugins.sources.mysql import connecting, decoding

_WAIT_S = 0.5
_PAGE_ROWS = 10_000
_MOST_JOINED = 100
_SNAPSHOT = (
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
)


class MysqlChanges:
    """Implements `ChangeSource` for a table of MariaDB."""

    def __init__(self, request: ChangeRequest, limits: LogLimits | None = None) -> None:
        self._request = request
        self._limits = limits or LogLimits()

    async def schema(self) -> pa.Schema:
        return (await self._look()).schema

    async def primary_key(self) -> tuple[str, ...]:
        return (await self._look()).key

    async def batches(self, position: str | None) -> AsyncGenerator[SourceBatch, None]:
        table = await self._look()
        at = None if position is None else positions.read(position, ".".join(table.relation))
        if at is None or at.is_loading:
            snapshot = await asyncio.to_thread(_Snapshot, table)
            try:
                async for batch in _loading(snapshot):
                    yield batch
            finally:
                await asyncio.to_thread(snapshot.close)
            at = snapshot.at
        log = BinaryLog(table, at, lambda: self._check(table), self._limits)
        log.start()
        try:
            yield SourceBatch(collecting.changes(table, (), 0), at.text(), is_whole=at.taken == 0)
            while True:
                found = await asyncio.to_thread(_taken, log)
                if found:
                    yield await asyncio.to_thread(_batch, table, found)
        finally:
            await asyncio.to_thread(log.close)

    async def confirm(self, position: str) -> None:
        """Do nothing: the server keeps its log as its own settings say."""

    async def aclose(self) -> None:
        """Do nothing; the connections are closed when the iteration over `batches` ends."""

    async def _look(self) -> FollowedTable:
        return await asyncio.to_thread(looking.look, self._request)

    def _check(self, table: FollowedTable) -> None:
        """Check that a statement has left the columns as they are.

        Raises:
            DatasetError: it has not.
        """
        if looking.look(self._request).columns != table.columns:
            raise DatasetError(
                "schema",
                f"{table.title} has other columns now; undo that, or list the columns of the "
                "dataset under its 'columns', which reloads it",
            )


class _Snapshot:
    """The rows of a table at one position of the log. Its methods block."""

    def __init__(self, table: FollowedTable) -> None:
        self.table = table
        try:
            self._connection = connecting.connect(table.login)
            for each in _SNAPSHOT:
                connecting.run(self._connection, each)
            found = dict(connecting.run(self._connection, "SHOW STATUS LIKE 'binlog_snapshot_%'"))
            ((gtid,),) = connecting.run(
                self._connection, "SELECT BINLOG_GTID_POS(%s, %s)",
                found.get("Binlog_snapshot_file", ""), found.get("Binlog_snapshot_position", "0"),
            )  # fmt: skip
        except (pymysql.MySQLError, OSError) as exc:
            raise _away(table) from exc
        if not gtid:
            self.close()
            raise DatasetError(
                "unavailable",
                f"{table.title}: the binary log has no transaction yet; it begins with the first "
                "one, for example FLUSH BINARY LOGS and any change",
            )
        self.at = MysqlPosition(".".join(table.relation), gtid)

    def pages(self) -> Generator[list[pa.Array], None, None]:
        """Yield the columns of some rows after the other.

        Raises:
            DatasetError: the connection is lost.
        """
        names = ", ".join(map(_quoted, self.table.schema.names))
        relation = ".".join(map(_quoted, self.table.relation))
        try:
            sent = connecting.sent(self._connection, f"SELECT {names} FROM {relation}")
            packets = connecting.packets(sent)
            while page := list(islice(packets, _PAGE_ROWS)):
                yield decoding.columns(page, len(self.table.columns))
        except (pymysql.MySQLError, OSError) as exc:
            raise _away(self.table) from exc

    def close(self) -> None:
        """End the transaction."""
        connecting.drop(self._connection)


async def _loading(snapshot: _Snapshot) -> AsyncGenerator[SourceBatch, None]:
    """Yield all rows, after a truncation; the last batch completes the load."""
    table, loading = snapshot.table, replace(snapshot.at, is_loading=True)
    emptied = collecting.changes(table, [(Op.TRUNCATE, {})], 0)
    with closing(snapshot.pages()) as pages:
        page = await asyncio.to_thread(next, pages, None)
        while page is not None:
            ops = [Op.UPSERT] * len(page[0])
            made = await asyncio.to_thread(collecting.of_texts, table, page, ops, len(ops))
            emptied, made = collecting.changes(table, (), 0), joined([emptied, made])
            page = await asyncio.to_thread(next, pages, None)
            if page is None:
                emptied = made
            else:
                yield SourceBatch(made, loading.text(), is_whole=False)
    # Its transaction would keep others from changing the definition of the table.
    await asyncio.to_thread(snapshot.close)
    yield SourceBatch(emptied, snapshot.at.text())


def _taken(log: BinaryLog) -> Sequence[LoggedChanges]:
    """Return the changes that are there, some at most; none if none come soon."""
    first = log.take(_WAIT_S)
    found = [] if first is None else [first]
    while found and found[-1].is_whole and len(found) < _MOST_JOINED:
        if not log.has_more:
            break
        following = log.take(_WAIT_S)
        if following is not None:
            found.append(following)
    return found


def _batch(table: FollowedTable, found: Sequence[LoggedChanges]) -> SourceBatch:
    last = found[-1]
    rows = [row for each in found for row in each.rows]
    made: Changes = collecting.changes(table, rows, sum(each.received for each in found))
    made_at = next((each.made_at for each in reversed(found) if each.made_at), None)
    return SourceBatch(made, last.position.text(), last.is_whole, made_at)


def _away(table: FollowedTable) -> DatasetError:
    return DatasetError("unavailable", f"{table.title}: MariaDB cannot be reached")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
