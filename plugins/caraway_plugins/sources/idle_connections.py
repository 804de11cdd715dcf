"""Connections to databases that no statement uses, kept for the next one with the same login."""

import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from caraway_core.concurrency.clocks import SecondsClock

MOST_IDLE = 8
LONGEST_IDLE_S = 300.0
Login = frozenset[tuple[str, str]]


class _Idle(NamedTuple):
    connection: Any
    since_s: float


class IdleCloser(Protocol):
    """Closes the connections of one kind of database."""

    def close_idle(self, connection: object, /) -> None:
        """Close a connection that no statement uses; it raises nothing."""
        ...


class IdleConnections:
    """A few connections for each login. What nobody used for long is closed: a password changes."""

    def __init__(self, closer: IdleCloser, clock: SecondsClock = time.monotonic) -> None:
        self._closer = closer
        self._clock = clock
        self._idle: dict[Login, list[_Idle]] = {}
        self._lock = threading.Lock()

    def take_idle(self, login: Mapping[str, str]) -> object | None:
        """Return an idle connection, or None."""
        with self._lock:
            idle = self._idle.get(frozenset(login.items()))
            return idle.pop().connection if idle else None

    def give(self, login: Mapping[str, str], connection: object) -> None:
        """Keep a connection, on which no statement may be running."""
        now_s = self._clock()
        with self._lock:
            unused = self._unused(now_s - LONGEST_IDLE_S)
            idle = self._idle.setdefault(frozenset(login.items()), [])
            (idle if len(idle) < MOST_IDLE else unused).append(_Idle(connection, now_s))
        for each in unused:
            self._closer.close_idle(each.connection)

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            idle = [each for kept in self._idle.values() for each in kept]
            self._idle.clear()
        for each in idle:
            self._closer.close_idle(each.connection)

    def _unused(self, oldest_s: float) -> list[_Idle]:
        """Take out those that nobody used for long."""
        unused: list[_Idle] = []
        for login, idle in list(self._idle.items()):
            unused += [each for each in idle if each.since_s < oldest_s]
            self._idle[login] = [each for each in idle if each.since_s >= oldest_s]
            if not self._idle[login]:
                del self._idle[login]
        return unused
