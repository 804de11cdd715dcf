"""Calls of hosted models, whose answers schedulers read in pages."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from caraway_core.concurrency import tasks as background
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError, ModelAwayError, ModelError
from caraway_core.protocols.hosting import AnswerParts

_MOST_PARTS = 256
"""Parts that wait for their reader; a slow one slows the model, not the memory."""
_FORGOTTEN_S = 60.0


@dataclass(slots=True, eq=False)
class _Call:
    """A call under way, and the unread parts of its answer."""

    key: str
    touched_s: float
    parts: deque[bytes] = field(default_factory=deque)
    error: CarawayError | None = None
    is_ended: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    taken: asyncio.Event = field(default_factory=asyncio.Event)
    reading: int = 0
    pump: asyncio.Task[None] | None = None


class ModelCalls:
    """The calls of an executor. A task of each reads the answer, so that pages have what is there.

    Call it from one event loop.
    """

    def __init__(self, clock: SecondsClock) -> None:
        self._clock = clock
        self._calls: dict[str, _Call] = {}
        self._tasks = background.Tasks()
        self.answered: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._calls)

    def count_of(self, key: str) -> int:
        """Return how many calls of a model are under way."""
        return sum(call.key == key for call in self._calls.values())

    async def begin_call(
        self,
        name: str,
        key: str,
        model: str,
        answer: AsyncGenerator[bytes, None],
        on_away: Callable[[], None],
    ) -> AnswerParts:
        """Begin a call, and return its first parts; `on_away` is called if the model is not there.

        Raises: as `next`.
        """
        call = _Call(key, self._clock())
        self._calls[name] = call
        pump = self._pump(call, model, answer, on_away)
        call.pump = self._tasks.spawn(pump, "call of a model")
        try:
            return await self.next(name)
        except asyncio.CancelledError:
            await self.end(name)
            raise

    async def next(self, name: str) -> AnswerParts:
        """Return the parts that are there, or wait for one.

        Raises:
            ModelError: the call failed, or there is none of this name.
        """
        call = self._calls.get(name)
        if call is None:
            raise ModelAwayError("the executor has no such call of a model")
        call.reading += 1
        try:
            while not call.parts and not call.is_ended:
                call.changed.clear()
                await call.changed.wait()
        finally:
            call.reading -= 1
            call.touched_s = self._clock()
        parts = tuple(call.parts)
        call.parts.clear()
        call.taken.set()
        if call.is_ended and (call.error is None or not parts):
            self._calls.pop(name, None)
            if call.error is not None:
                raise call.error
            return AnswerParts(parts, is_last=True)
        return AnswerParts(parts, is_last=False)

    async def end(self, name: str) -> None:
        """End a call."""
        call = self._calls.pop(name, None)
        if call is None or call.pump is None:
            return
        if not call.pump.done():
            call.pump.cancel()
            await asyncio.wait((call.pump,))
        if not call.is_ended:
            call.error, call.is_ended = _away(), True
            call.changed.set()

    async def end_forgotten(self) -> None:
        """End the calls whose answers are not read any more."""
        oldest_s = self._clock() - _FORGOTTEN_S
        for name, call in list(self._calls.items()):
            if call.touched_s < oldest_s and not call.reading:
                await self.end(name)

    async def aclose(self) -> None:
        for name in list(self._calls):
            await self.end(name)
        await self._tasks.aclose()

    async def _pump(
        self,
        call: _Call,
        model: str,
        answer: AsyncGenerator[bytes, None],
        on_away: Callable[[], None],
    ) -> None:
        try:
            async with aclosing(answer) as parts:
                async for part in parts:
                    call.parts.append(part)
                    call.changed.set()
                    while len(call.parts) >= _MOST_PARTS:
                        call.taken.clear()
                        await call.taken.wait()
            self.answered[model] += 1
        except CarawayError as exc:
            call.error = exc
            if isinstance(exc, ModelAwayError):
                on_away()
        except BaseException as exc:
            call.error = _away() if background.ends(exc) else _failed(model)
            raise
        finally:
            call.is_ended = True
            call.changed.set()


def _away() -> ModelAwayError:
    return ModelAwayError("the executor has ended the call of the model")


def _failed(model: str) -> ModelError:
    return ModelError(f"model '{model}': internal error; the log of its executor has the cause")
