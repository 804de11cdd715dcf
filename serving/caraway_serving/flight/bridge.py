"""The way from the server's threads to the event loop."""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import TypeVar

from pyarrow import flight

from caraway_core.errors import QueryCancelledError, ShuttingDownError

_LOOK_S = 0.1
_STOPPING = "Runtime is shutting down"
T = TypeVar("T")


class Bridge:
    """Runs coroutines on the loop while the thread of a call waits for them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_closed = threading.Event()

    def run_work(self, work: Coroutine[object, object, T], context: flight.ServerCallContext) -> T:
        """Wait for the work as long as the client does.

        Raises:
            QueryCancelledError: the client went away first; the work is cancelled.
            ShuttingDownError: the endpoint was closed meanwhile.
        """
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as exc:
            work.close()
            raise ShuttingDownError(_STOPPING) from exc
        # gRPC does not inform a thread that waits elsewhere, so it has to look.
        while not concurrent.futures.wait((future,), _LOOK_S).done:
            if context.is_cancelled():
                future.cancel()
                raise QueryCancelledError("the client went away")
            if self._is_closed.is_set():
                future.cancel()
                raise ShuttingDownError(_STOPPING)
        try:
            return future.result()
        except concurrent.futures.CancelledError as exc:
            raise ShuttingDownError(_STOPPING) from exc

    def post(self, action: Callable[[], None]) -> None:
        """Do something on the loop soon; without a loop there is nothing left to do it for."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(action)

    def close(self) -> None:
        """Let no thread wait any longer."""
        self._is_closed.set()
