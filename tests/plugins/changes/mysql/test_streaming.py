"""The binary log as transactions of one table: order, pieces, positions, errors and its end."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pymysql
import pytest
from pymysqlreplication.event import MariadbGtidEvent, QueryEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from caraway_core.changes import Op
from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import PositionLostError
from caraway_plugins.changes.mysql import streaming
from caraway_plugins.changes.mysql.looking import FollowedColumn, FollowedTable
from caraway_plugins.changes.mysql.positions import MysqlPosition
from caraway_plugins.changes.mysql.streaming import BinaryLog, LoggedChanges, LogLimits

WAIT_S = 30.0
FIELDS = (pa.field("id", pa.int64()), pa.field("note", pa.string()))
TABLE = FollowedTable(
    {}, ("shop", "orders"), tuple(FollowedColumn(each, "") for each in FIELDS), ("id",), True
)
START = MysqlPosition("shop.orders", "0-1-5")


class _Column:
    def __init__(self, name: str) -> None:
        self.name = name


class _Event:
    """What all events of a test have."""

    timestamp = 1_700_000_000


class Gtid(_Event, MariadbGtidEvent):  # type: ignore[misc] # no types
    def __init__(self, gtid: str) -> None:
        self._text = gtid

    gtid = property(lambda self: self._text)


class Xid(_Event, XidEvent):  # type: ignore[misc] # no types
    def __init__(self) -> None:
        """Have no content."""


class Query(_Event, QueryEvent):  # type: ignore[misc] # no types
    def __init__(self, sql: str) -> None:
        self.query, self.schema = sql, b"shop"


class _Rows(_Event):
    def __init__(self, *rows: dict[str, Any], columns: Sequence[str] = ("id", "note")) -> None:
        self._given = rows
        self.columns = [_Column(each) for each in columns]

    rows = property(lambda self: list(self._given))


class Write(_Rows, WriteRowsEvent):  # type: ignore[misc] # no types
    pass


class Delete(_Rows, DeleteRowsEvent):  # type: ignore[misc] # no types
    pass


class Update(_Rows, UpdateRowsEvent):  # type: ignore[misc] # no types
    pass


def row(number: int, note: str | None = "x", why: str = "null") -> dict[str, Any]:
    return {"values": {"id": number, "note": note}, "none_sources": {"note": why}}


def changed(before: int, after: int) -> dict[str, Any]:
    return {
        "before_values": {"id": before, "note": "old"}, "before_none_sources": {},
        "after_values": {"id": after, "note": "new"}, "after_none_sources": {},
    }  # fmt: skip


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., BinaryLog]]:
    """Return what starts a log of events; an exception among them is raised in their place."""
    logs: list[BinaryLog] = []
    hold = threading.Event()

    def start(
        *events: object,
        at: MysqlPosition = START,
        limits: LogLimits | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> BinaryLog:
        def read(_log: BinaryLog) -> Iterator[object]:
            for each in events:
                if isinstance(each, BaseException):
                    raise each
                yield each
            hold.wait(WAIT_S)

        monkeypatch.setattr(BinaryLog, "_events", read)
        log = BinaryLog(TABLE, at, check, limits or LogLimits())
        logs.append(log)
        log.start()
        return log

    yield start
    hold.set()
    for log in logs:
        log.close()
        assert not log._thread.is_alive()


def taken(log: BinaryLog) -> LoggedChanges:
    found = log.take(WAIT_S)
    assert found is not None
    return found


def brief(changes: LoggedChanges) -> list[tuple[Op, int | None]]:
    return [(op, values.get("id")) for op, values in changes.rows]


def transaction(number: int, *events: object) -> list[object]:
    return [Gtid(f"0-1-{number}"), Query("BEGIN"), *events, Xid()]


def test_a_transaction_comes_whole_and_in_order(logged: Callable[..., BinaryLog]) -> None:
    log = logged(
        *transaction(
            6, Write(row(1), row(2)), Update(changed(1, 1), changed(2, 3)), Delete(row(3))
        ),
        *transaction(7, Write(row(4))),
    )
    first = taken(log)
    assert brief(first) == [
        (Op.UPSERT, 1), (Op.UPSERT, 2), (Op.UPSERT, 1), (Op.DELETE, 2), (Op.UPSERT, 3),
        (Op.DELETE, 3),
    ]  # fmt: skip
    assert (first.received, first.is_whole, first.position.gtid) == (5, True, "0-1-6")
    assert first.made_at is not None and first.made_at.year == 2023
    assert taken(log).position.gtid == "0-1-7"


def test_a_long_transaction_comes_in_pieces_with_positions_inside_it(
    logged: Callable[..., BinaryLog],
) -> None:
    events = transaction(6, Write(*(row(number) for number in range(5))))
    pieces = []
    log = logged(*events, limits=LogLimits(rows=2, waiting=1))
    for _ in range(3):
        pieces.append(taken(log))
    assert [len(each.rows) for each in pieces] == [2, 2, 1]
    assert [each.is_whole for each in pieces] == [False, False, True]
    assert [each.position.taken for each in pieces] == [2, 4, 0]
    assert [each.position.gtid for each in pieces] == ["0-1-5", "0-1-5", "0-1-6"]
    again = logged(*events, at=pieces[0].position)
    assert [number for _, number in brief(taken(again))] == [2, 3, 4], "2 were applied before"


def test_a_transaction_of_other_tables_moves_the_position_only_in_time(
    logged: Callable[..., BinaryLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "_TELL_S", -1.0)
    changes = taken(logged(*transaction(6)))
    assert (changes.rows, changes.position.gtid, changes.made_at) == ([], "0-1-6", None)
    monkeypatch.setattr(streaming, "_TELL_S", 1000.0)
    log = logged(*transaction(6), *transaction(7, Write(row(1))))
    assert taken(log).position.gtid == "0-1-7"
    assert log.take(0.0) is None and not log.has_more


def test_statements_empty_the_table_or_check_it(logged: Callable[..., BinaryLog]) -> None:
    checks: list[None] = []
    log = logged(
        Gtid("0-1-6"), Query("TRUNCATE TABLE orders"),
        Gtid("0-1-7"), Query("ALTER TABLE orders ADD COLUMN more INT"),
        *transaction(8, Write(row(1))), check=lambda: checks.append(None),
    )  # fmt: skip
    assert brief(taken(log)) == [(Op.TRUNCATE, None)]
    assert brief(taken(log)) == [(Op.UPSERT, 1)] and checks == [None]


def test_a_check_that_fails_ends_the_log(logged: Callable[..., BinaryLog]) -> None:
    def check() -> None:
        raise DatasetError("schema", "table 'shop.orders' has other columns now")

    log = logged(Gtid("0-1-6"), Query("ALTER TABLE orders DROP COLUMN note"), check=check)
    with pytest.raises(DatasetError, match="has other columns now"):
        taken(log)


@pytest.mark.parametrize(
    "events",
    [
        [Gtid("0-1-6"), Query("DROP TABLE orders")],
        [Gtid("0-1-6"), Query("BEGIN"), Write(row(1)), Gtid("0-1-7")],
    ],
    ids=["dropped", "a transaction without an end"],
)
def test_a_table_that_cannot_be_followed_on_is_loaded_again(
    events: list[object], logged: Callable[..., BinaryLog]
) -> None:
    with pytest.raises(PositionLostError, match="was replaced"):
        taken(logged(*events))


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Write(row(1), columns=["id"]), "has no column 'note'"),
        (Write(row(1), columns=["id", "note", "more"]), "has the new column 'more'"),
        (Write(row(1, None, "zero date")), "a value of column 'note' is no date"),
    ],
)
def test_rows_that_do_not_fit_are_errors(
    event: object, words: str, logged: Callable[..., BinaryLog]
) -> None:
    with pytest.raises(DatasetError, match=words) as caught:
        taken(logged(*transaction(6, event)))
    assert caught.value.type == "schema"


def test_null_is_a_value(logged: Callable[..., BinaryLog]) -> None:
    changes = taken(logged(*transaction(6, Write(row(1, None)))))
    assert changes.rows == [(Op.UPSERT, {"id": 1, "note": None})]


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (pymysql.OperationalError(1236, "purged"), "unavailable", "no longer has its binary log"),
        (pymysql.OperationalError(1045, "denied"), "auth", "grant the user REPLICATION SLAVE"),
        (pymysql.OperationalError(2013, "lost"), "unavailable", "cannot be reached"),
        (ConnectionResetError("a private detail"), "unavailable", "cannot be reached"),
        (ValueError("a private detail"), "unsupported", r"cannot be read \(ValueError\)"),
    ],
)
def test_errors_of_the_reader_say_what_to_do(
    error: Exception, kind: str, words: str, logged: Callable[..., BinaryLog]
) -> None:
    with pytest.raises(DatasetError, match=words) as caught:
        taken(logged(error))
    assert "private" not in caught.value.message
    is_lost = isinstance(caught.value, PositionLostError)
    assert is_lost == ("no longer" in words) and (is_lost or caught.value.type == kind)


def test_changes_before_an_error_are_taken_first(logged: Callable[..., BinaryLog]) -> None:
    log = logged(*transaction(6, Write(row(1))), OSError())
    assert brief(taken(log)) == [(Op.UPSERT, 1)]
    with pytest.raises(DatasetError, match="cannot be reached"):
        taken(log)
    assert not log.has_more


def test_closing_ends_a_reader_that_waits_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    is_full = threading.Event()

    def read(_log: BinaryLog) -> Iterator[object]:
        *begun, end = transaction(7, Write(row(2)))
        yield from (*transaction(6, Write(row(1))), *begun)
        is_full.set()
        yield end

    monkeypatch.setattr(BinaryLog, "_events", read)
    log = BinaryLog(TABLE, START, lambda: None, LogLimits(waiting=1))
    log.start()
    assert is_full.wait(WAIT_S)
    log.close()
    assert not log._thread.is_alive() and log.has_more
