"""The binary log of a server as transactions of one table; a thread reads it."""

import queue
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import MariadbGtidEvent, QueryEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from caraway_core.changes import Op
from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import PositionLostError
from caraway_plugins.changes.mysql import statements
from caraway_plugins.changes.mysql.collecting import Row
from caraway_plugins.changes.mysql.looking import FollowedTable
from caraway_plugins.changes.mysql.positions import MysqlPosition
from caraway_plugins.sources.mysql import connecting

_EVENTS = (
    MariadbGtidEvent, QueryEvent, XidEvent, DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent,
)  # fmt: skip
_OWN_IDS = (2**31, 2**32 - 1)
_HEARTBEAT_S = 10.0
_SILENCE_S = 60
"""For so long a server may send nothing, not even a heartbeat."""
_GONE = frozenset({1236, 1945, 1955})
_REFUSED = frozenset({1044, 1045, 1142, 1227, 1698})
_TELL_S = 1.0
"""After so long the position moves, although no transaction has changed the table."""
_PUT_S = 0.2
_IS_NULL = "null"


@dataclass(frozen=True, slots=True)
class LogLimits:
    """The size of a piece of a transaction, and how many pieces wait."""

    rows: int = 5_000
    waiting: int = 8


@dataclass(slots=True)
class LoggedChanges:
    """Changes in order, and the position after them."""

    position: MysqlPosition
    rows: list[tuple[Op, Row]] = field(default_factory=list)
    received: int = 0
    is_whole: bool = True
    made_at: datetime | None = None


class BinaryLog:
    """Reads the log from a position on."""

    def __init__(
        self,
        table: FollowedTable,
        position: MysqlPosition,
        check: Callable[[], None],
        limits: LogLimits,
    ) -> None:
        """Take what checks the table after a statement that may have changed it."""
        self._table, self._position, self._limits = table, position, limits
        self._check = check
        self._made: queue.Queue[LoggedChanges | BaseException] = queue.Queue(limits.waiting)
        self._connections: list[object] = []
        self._is_closed = False
        self._thread = threading.Thread(target=self._pump, name="binlog", daemon=True)
        self._open = LoggedChanges(position)
        self._gtid = ""
        self._seen = 0
        self._is_open = False
        self._told_s = time.monotonic()

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def take(self, wait_s: float) -> LoggedChanges | None:
        """Return the next changes; None if none come in time.

        Raises:
            DatasetError: the log cannot be read, or the table is another one.
        """
        try:
            found = self._made.get(timeout=wait_s)
        except queue.Empty:
            return None
        if isinstance(found, BaseException):
            raise found
        return found

    @property
    def has_more(self) -> bool:
        """True if changes are there, and no error."""
        with self._made.mutex:
            return bool(self._made.queue) and isinstance(self._made.queue[0], LoggedChanges)

    def close(self) -> None:
        """End the connections and the thread."""
        self._is_closed = True
        for each in self._connections:
            connecting.drop(each)
        if self._thread.is_alive():
            self._thread.join()

    def _pump(self) -> None:
        try:
            for event in self._events():
                self._take(event)
                if self._is_closed:
                    return
        except BaseException as exc:  # noqa: BLE001 -- the reader raises any exception
            self._put(self._error(exc))

    def _events(self) -> Iterator[object]:
        schema, name = self._table.relation
        reader = BinLogStreamReader(
            connection_settings={},
            server_id=random.randint(*_OWN_IDS),
            blocking=True,
            only_events=_EVENTS,
            only_schemas=[schema],
            only_tables=[name],
            auto_position=self._position.gtid,
            is_mariadb=True,
            slave_heartbeat=_HEARTBEAT_S,
            pymysql_wrapper=self._connect,
            enable_logging=False,
        )
        yield from reader

    def _connect(self, **asked: object) -> object:
        """Connect for the library, which would begin at the first position again after a loss."""
        if self._is_closed or len(self._connections) == len(("log", "control")):
            raise DatasetError("unavailable", f"{self._table.title}: the connection was lost")
        connection = connecting.connect(self._table.login)
        connection._read_timeout = _SILENCE_S
        if "cursorclass" in asked:
            connection.cursorclass = asked["cursorclass"]
        self._connections.append(connection)
        return connection

    def _take(self, event: object) -> None:
        match event:
            case MariadbGtidEvent():
                if self._is_open and self._seen:
                    raise self._replaced()  # One of XA has no end yet.
                self._gtid, self._seen, self._is_open = event.gtid, 0, True
            case XidEvent():
                self._end(event)
            case QueryEvent():
                self._query(event)
            case WriteRowsEvent():
                for row in self._rows(event):
                    self._add([(Op.UPSERT, self._values(row, ""))], event)
            case DeleteRowsEvent():
                for row in self._rows(event):
                    self._add([(Op.DELETE, self._values(row, ""))], event)
            case UpdateRowsEvent():
                for row in self._rows(event):
                    before, after = (self._values(row, each) for each in ("before_", "after_"))
                    self._add(self._updated(before, after), event)

    def _rows(self, event: Any) -> Any:
        """Return the rows of an event that has the columns of the table.

        Raises:
            DatasetError: it lacks some.
        """
        names = {each.name for each in event.columns}
        for name in self._table.schema.names:
            if name not in names:
                raise self._changed(f"has no column '{name}'")
        if self._table.takes_all and len(names) > len(self._table.columns):
            raise self._changed(f"has the new column '{min(names - {*self._table.schema.names})}'")
        return event.rows

    def _values(self, row: Any, kind: str) -> Row:
        """Return the values of a row.

        Raises:
            DatasetError: one is NULL because Python has no such value, as dates of zeros.
        """
        values: Row = row[f"{kind}values"]
        why = row[f"{kind}none_sources"]
        for name in self._table.schema.names:
            if values[name] is None and why.get(name, _IS_NULL) != _IS_NULL:
                raise DatasetError(
                    "schema",
                    f"{self._table.title}: a value of column '{name}' is no date; correct it, or "
                    "leave the column out under 'columns'",
                )
        return values

    def _updated(self, before: Row, after: Row) -> list[tuple[Op, Row]]:
        is_same = all(before[name] == after[name] for name in self._table.key)
        return [*([] if is_same else [(Op.DELETE, before)]), (Op.UPSERT, after)]

    def _add(self, found: list[tuple[Op, Row]], event: object) -> None:
        self._seen += 1
        if self._seen <= self._position.taken:
            return  # They were applied before.
        self._open.rows += found
        self._open.received += 1
        if len(self._open.rows) >= self._limits.rows:
            self._flush(replace(self._position, taken=self._seen), event, is_whole=False)

    def _query(self, event: Any) -> None:
        text = event.query if isinstance(event.query, str) else event.query.decode()
        schema = event.schema if isinstance(event.schema, str) else event.schema.decode()
        match statements.effect_of(text, schema, self._table.relation):
            case "begin":
                return
            case "truncate":
                self._add([(Op.TRUNCATE, {})], event)
            case "alter":
                self._check()
            case "replace":
                raise self._replaced()
        self._end(event)

    def _end(self, event: Any) -> None:
        """End a transaction."""
        self._position, self._is_open = self._position.after(self._gtid), False
        is_due = time.monotonic() - self._told_s > _TELL_S
        if self._open.rows or self._open.position.taken or is_due:
            self._flush(self._position, event, is_whole=True)

    def _flush(self, position: MysqlPosition, event: Any, *, is_whole: bool) -> None:
        made = self._open
        made.position, made.is_whole = position, is_whole
        made.made_at = datetime.fromtimestamp(event.timestamp, UTC) if made.rows else None
        self._open = LoggedChanges(position)
        self._told_s = time.monotonic()
        self._put(made)

    def _put(self, made: LoggedChanges | BaseException) -> None:
        while not self._is_closed:
            with suppress(queue.Full):
                self._made.put(made, timeout=_PUT_S)
                return

    def _replaced(self) -> PositionLostError:
        return PositionLostError(
            f"{self._table.title} was replaced, or changed in a way that the log does not have as "
            "rows of one transaction; reloading"
        )

    def _changed(self, what: str) -> DatasetError:
        return DatasetError(
            "schema",
            f"{self._table.title} {what}; undo that, or list the columns of the dataset under its "
            "'columns', which reloads it",
        )

    def _error(self, exc: BaseException) -> BaseException:
        if isinstance(exc, DatasetError):
            return exc
        code = exc.args[0] if isinstance(exc, pymysql.MySQLError) and exc.args else None
        title = self._table.title
        if code in _GONE:
            return PositionLostError(
                f"{title}: the server no longer has its binary log from the stored position on; "
                "reloading"
            )
        if code in _REFUSED:
            return DatasetError(
                "auth",
                f"{title}: the server refuses its binary log; grant the user REPLICATION SLAVE "
                "and BINLOG MONITOR",
            )
        if isinstance(exc, pymysql.MySQLError | OSError):
            return DatasetError("unavailable", f"{title}: MariaDB cannot be reached")
        return DatasetError(
            "unsupported",
            f"{title}: a change in the binary log cannot be read ({type(exc).__name__}); leave "
            "columns of unusual types out under 'columns'",
        )
