"""Bounds what the bodies of all requests take in memory together."""

import asyncio
from collections import deque

from caraway_serving.errors import RefusedRequestError

FREE_BYTES = 64 * 1024
"""Bodies up to this size are not counted: the number of connections bounds them."""
_WAIT_S = 5.0
_RETRY_AFTER_S = 2


class BodyMemory:
    """Bytes that bodies may take; who comes first is served first."""

    def __init__(self, capacity_bytes: int, wait_s: float = _WAIT_S) -> None:
        self.capacity_bytes = capacity_bytes
        self.taken_bytes = 0
        self._wait_s = wait_s
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size: int) -> None:
        """Take room, and wait for it if there is too little; `give` must follow.

        Raises:
            RefusedError: 503, no room came free in time.
        """
        if not self._waiting and self.taken_bytes + size <= self.capacity_bytes:
            self.taken_bytes += size
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            async with asyncio.timeout(self._wait_s):
                await turn
        except BaseException as exc:
            self._withdraw(size, turn)
            if isinstance(exc, TimeoutError):
                raise RefusedRequestError(
                    503,
                    "the bodies of other requests take all the memory that there is for them; "
                    "send the request again, or raise runtime.http.max_body_memory",
                    {"retry-after": str(_RETRY_AFTER_S)},
                ) from None
            raise

    def give(self, size: int) -> None:
        """Give room back, to those who wait for it."""
        self.taken_bytes -= size
        self._admit()

    def _admit(self) -> None:
        while self._waiting:
            size, turn = self._waiting[0]
            if self.taken_bytes + size > self.capacity_bytes:
                return
            self._waiting.popleft()
            if not turn.done():
                self.taken_bytes += size
                turn.set_result(None)

    def _withdraw(self, size: int, turn: asyncio.Future[None]) -> None:
        if turn.done() and not turn.cancelled():
            # It was given in the moment the wait ended.
            self.give(size)
            return
        self._waiting = deque(each for each in self._waiting if each[1] is not turn)
        self._admit()


class Lease:
    """The room that one request has taken; it is given back when the request has ended."""

    def __init__(self, room: BodyMemory) -> None:
        self._room = room
        self._size = 0

    async def grow(self, size: int) -> None:
        """Have room for a body of so many bytes, besides what was asked for before.

        Raises:
            RefusedError: as `Room.take`.
        """
        if size <= FREE_BYTES and not self._size:
            return
        await self._room.take(size)
        self._size += size

    def end(self) -> None:
        size, self._size = self._size, 0
        if size:
            self._room.give(size)
