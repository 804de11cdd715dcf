"""Runs statements with parameters over Flight, as prepared statements that are used again."""

import contextlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import flight

from caraway.flight import messages as flight_sql

MOST_IDLE = 64
_MOST_SHORT = 256
_CLOSE_S = 1.0


@dataclass(frozen=True, slots=True)
class PreparedHandle:
    """A statement that the server has prepared. `is_reused` says that it may be forgotten there."""

    sql: str
    handle: bytes
    is_reused: bool = False

    @property
    def descriptor(self) -> Any:
        return flight.FlightDescriptor.for_command(flight_sql.query_command(self.handle))


class PreparedPool:
    """The prepared statements of one server that no statement uses at the moment.

    The server keeps one row of parameters for each, so two threads never share one.
    """

    def __init__(self, most_idle: int = MOST_IDLE) -> None:
        self._most_idle = most_idle
        self._idle: OrderedDict[bytes, PreparedHandle] = OrderedDict()
        self._abandoned: list[PreparedHandle] = []
        self._short: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def note_short(self, sql: str) -> None:
        """Note that a statement only reads, had few rows, and can be requested by one call."""
        with self._lock:
            self._short[sql] = None
            if len(self._short) > _MOST_SHORT:
                self._short.popitem(last=False)

    def is_short(self, sql: str) -> bool:
        """Return whether that was noted of a statement."""
        with self._lock:
            return sql in self._short

    def take_statement(self, client: object, options: object, sql: str) -> PreparedHandle:
        """Return an idle statement of this text, or prepare one."""
        with self._lock:
            abandoned, self._abandoned = self._abandoned, []
            key = next((key for key, each in self._idle.items() if each.sql == sql), None)
            handle = self._idle.pop(key) if key is not None else None
        for each in abandoned:
            close(client, options, each)
        return handle or prepare(client, options, sql)

    def give_back(self, client: object, options: object, used: PreparedHandle) -> None:
        """Keep a statement for the next use, and close the one that was unused for longest."""
        with self._lock:
            self._idle[used.handle] = PreparedHandle(used.sql, used.handle, is_reused=True)
            surplus = len(self._idle) > self._most_idle
            oldest = self._idle.popitem(last=False)[1] if surplus else None
        if oldest is not None:
            close(client, options, oldest)

    def abandon(self, used: PreparedHandle) -> None:
        """Close a statement before the next one is taken.

        Its last call may still be on its way, and must not run with the parameters of another.
        """
        with self._lock:
            self._abandoned.append(used)

    def clear(self) -> list[PreparedHandle]:
        """Remove all statements that are not in use, and return them."""
        with self._lock:
            handles = [*self._idle.values(), *self._abandoned]
            self._idle.clear()
            self._abandoned.clear()
        return handles


def prepare(client: Any, options: object, sql: str) -> PreparedHandle:
    """Have the server prepare a statement."""
    action = flight.Action(flight_sql.CREATE, flight_sql.create_request(sql))
    answers = [each.body.to_pybytes() for each in client.do_action(action, options)]
    return PreparedHandle(sql, flight_sql.prepared_handle(answers[0] if answers else b""))


def bind(client: Any, options: object, prepared: PreparedHandle, row: pa.RecordBatch) -> None:
    """Bind a row of parameters."""
    writer, reader = client.do_put(prepared.descriptor, row.schema, options)
    with writer:
        writer.write_batch(row)
        writer.done_writing()
        # The server answers when it has the row, or with an error.
        while reader.read() is not None:
            pass


def close(client: Any, options: object, prepared: PreparedHandle) -> None:
    """Have the server forget a statement; without that, it does so an hour after the last use."""
    action = flight.Action(flight_sql.CLOSE, flight_sql.close_request(prepared.handle))
    with contextlib.suppress(pa.ArrowException, flight.FlightError):
        list(client.do_action(action, options))


def close_all(client: object, headers: object, prepared: list[PreparedHandle]) -> None:
    """Close statements within a second."""
    options = flight.FlightCallOptions(timeout=_CLOSE_S, headers=headers)
    for each in prepared:
        close(client, options, each)
