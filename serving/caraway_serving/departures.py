"""Ends the work of a request whose client has left, in the task that serves the request."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Protocol, TypeVar

from starlette.requests import ClientDisconnect

DEPARTURE = "caraway.departure"
"""The key in the scope of a request under which its connection puts the `Departure`."""
T = TypeVar("T")


class PausedConnection(Protocol):
    """A connection that must be read to notice that the client has left."""

    def resume_reading(self) -> None:
        """Read from it again."""
        ...


class Departure:
    """The departure of one request's client: a connection that closes before the response ends.

    A task that waits for `http.disconnect` beside the work would say the same, and cost as much as
    a tenth of a small statement.
    """

    __slots__ = ("_connection", "_is_past", "_tell")

    def __init__(self, connection: PausedConnection) -> None:
        self._is_past = False
        self._connection = connection
        self._tell: Callable[[], object] | None = None

    def happen(self) -> None:
        """Record that the client has left, and cancel the work that it waited for."""
        self._is_past = True
        tell, self._tell = self._tell, None
        if tell is not None:
            tell()

    async def cut_short(self, work: Coroutine[object, object, T]) -> T:
        """Do the work, and cancel it if the client leaves.

        Raises:
            ClientDisconnect: the client left first; the work was cancelled.
        """
        task = asyncio.current_task()
        assert task is not None
        if self._is_past:
            work.close()
            raise ClientDisconnect
        is_told = False
        before = task.cancelling()

        def tell() -> None:
            nonlocal is_told
            is_told = True
            task.cancel()

        # A server that reads nothing more from a connection does not see that it closes.
        self._connection.resume_reading()
        self._tell = tell
        try:
            return await work
        except asyncio.CancelledError:
            if is_told and task.cancelling() == before + 1:
                raise ClientDisconnect from None
            raise
        finally:
            self._tell = None
            if is_told:
                task.uncancel()
