"""Limits the memory of all request bodies together, and of their parsed values."""

import asyncio
from collections import deque

from caraway_serving.errors import RefusedRequestError

FREE_BYTES = 64 * 1024
"""Smaller bodies are not counted, because the number of connections limits them."""
_WAIT_S = 5.0
_RETRY_AFTER_S = 2


class BodyMemory:
    """A budget of bytes for request bodies, granted in order of arrival."""

    def __init__(self, capacity_bytes: int, wait_s: float = _WAIT_S) -> None:
        self.capacity_bytes = capacity_bytes
        self.taken_bytes = 0
        self._wait_s = wait_s
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take_bytes(self, size: int) -> None:
        """Take bytes from the budget, and wait if there are too few; call `give` afterwards.

        Raises:
            RefusedRequestError: 503, the bytes were not available in time.
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
                    "other request bodies use all of the available memory; "
                    "send the request again, or raise runtime.http.max_body_memory",
                    {"retry-after": str(_RETRY_AFTER_S)},
                ) from None
            raise

    def give(self, size: int) -> None:
        """Return bytes to the budget, for waiting requests."""
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
            # The bytes were granted at the moment the wait ended.
            self.give(size)
            return
        self._waiting = deque(each for each in self._waiting if each[1] is not turn)
        self._admit()


class Lease:
    """The bytes that one request has taken, returned when the request ends."""

    def __init__(self, room: BodyMemory, unfolded: BodyMemory | None = None) -> None:
        """Take the budget of bodies, and the one of what they become.

        There are two, because a request that waits for the second one still holds its body.
        """
        self._room = room
        self._unfolded = unfolded or BodyMemory(room.capacity_bytes)
        self._size = self._unfolded_size = 0

    @property
    def capacity_bytes(self) -> int:
        """The bytes that all bodies together may become."""
        return self._unfolded.capacity_bytes

    async def grow(self, size: int) -> None:
        """Take bytes until the lease covers a body of this size.

        Raises:
            RefusedRequestError: as `BodyMemory.take_bytes`.
        """
        if size <= FREE_BYTES and not self._size:
            return
        await self._room.take_bytes(size)
        self._size += size

    async def unfold(self, size: int) -> None:
        """Take the bytes that a body becomes when it is parsed; all of them, if it needs more.

        Raises:
            RefusedRequestError: as `BodyMemory.take_bytes`.
        """
        size = min(size, self.capacity_bytes)
        await self._unfolded.take_bytes(size)
        self._unfolded_size += size

    def end(self) -> None:
        """Return all bytes of the lease."""
        size, self._size = self._size, 0
        if size:
            self._room.give(size)
        size, self._unfolded_size = self._unfolded_size, 0
        if size:
            self._unfolded.give(size)
