"""Limits on the calls of one model: how many at once, how many a minute, how many tokens."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from caraway_assist.models.usage import NO_LIMITS, Usage, UsageLimits, UsedUp
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.ids import PrincipalId

_QUEUE_S = 30.0
_RATES = {"requests_per_minute": "requests a minute", "tokens_per_minute": "tokens a minute"}


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """The limits of a model; None means no limit."""

    concurrent: int | None = 256
    queued: int = 256
    of_model: UsageLimits = NO_LIMITS
    of_key: UsageLimits = NO_LIMITS
    """For each key by itself."""


class KeyLimitError(ModelAwayError):
    """A key has used up its share of a model; other keys may call it."""


class ModelLimits:
    """Counts the calls of one model in this process."""

    def __init__(
        self, model: str, settings: LimitSettings, clock: SecondsClock = time.time
    ) -> None:
        self._model = model
        self._settings = settings
        self._clock = clock
        self._used = Usage(settings.of_model, clock)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self._keys: dict[PrincipalId | None, Usage] = {}
        self.active = 0

    @property
    def queued(self) -> int:
        return len(self._waiting)

    async def idle(self) -> None:
        """Wait until no call runs."""
        await self._idle.wait()

    @asynccontextmanager
    async def slot(self, key: PrincipalId | None = None) -> AsyncIterator[None]:
        """Take part in the calls under way, for a key; wait for a place if there is none.

        Raises:
            ModelAwayError: too many calls run and wait, or too many were made; it says until when.
            ModelError: the tokens of the day are used up.
        """
        used_by_key = self._of(key)
        self._check(used_by_key)
        await self._enter()
        try:
            # Others may have used up a limit while this one waited.
            self._check(used_by_key)
            self._used.count_request()
            if used_by_key is not None:
                used_by_key.count_request()
            yield
        finally:
            self._leave()

    def count_tokens(self, tokens: int, key: PrincipalId | None = None) -> None:
        """Count what a call of a key used."""
        self._used.count_tokens(tokens)
        if (used_by_key := self._of(key)) is not None:
            used_by_key.count_tokens(tokens)

    def _of(self, key: PrincipalId | None) -> Usage | None:
        limits = self._settings.of_key
        if limits == NO_LIMITS:
            return None
        if (used := self._keys.get(key)) is None:
            used = self._keys[key] = Usage(limits, self._clock)
        return used

    def _check(self, used_by_key: Usage | None) -> None:
        if (reached := self._used.used_up()) is not None:
            raise _model_error(self._model, reached)
        if used_by_key is not None and (reached := used_by_key.used_up()) is not None:
            raise _key_error(self._model, reached)

    async def _enter(self) -> None:
        most = self._settings.concurrent
        if most is None or self.active < most:
            self.active += 1
            self._idle.clear()
            return
        if len(self._waiting) >= self._settings.queued:
            raise ModelAwayError(
                f"model '{self._model}': {self.active} calls run and {len(self._waiting)} wait, "
                "which is the limit; try again later, or raise 'max_concurrent_requests'",
                "rate_limit",
            )
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            async with asyncio.timeout(_QUEUE_S):
                await place
        except BaseException as exc:
            if place.done() and not place.cancelled():
                self._leave()
            elif place in self._waiting:
                self._waiting.remove(place)
            if isinstance(exc, TimeoutError):
                raise ModelAwayError(
                    f"model '{self._model}': no call ended within {_QUEUE_S:g} s; try again later, "
                    "or raise 'max_concurrent_requests'",
                    "rate_limit",
                    5,
                ) from None
            raise

    def _leave(self) -> None:
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                # The place passes on, so that later calls do not overtake those that wait.
                place.set_result(None)
                return
        self.active -= 1
        if not self.active:
            self._idle.set()


def _model_error(model: str, reached: UsedUp) -> ModelError:
    if reached.limit == "tokens_per_day":
        return ModelError(
            f"model '{model}': the {reached.most} tokens of its 'tokens_per_day' are used up; "
            "they are reset at 00:00 UTC, or raise the param",
            "quota",
        )
    return ModelAwayError(
        f"model '{model}': more than {reached.most} {_RATES[reached.limit]}, which is its "
        f"'{reached.limit}'; try again in {reached.wait_s} s",
        "rate_limit",
        reached.wait_s,
    )


def _key_error(model: str, reached: UsedUp) -> KeyLimitError:
    name = f"'{reached.limit}_per_key'"
    if reached.limit == "tokens_per_day":
        told = f"the {reached.most} tokens of {name} are used up"
    else:
        told = f"more than {reached.most} {_RATES[reached.limit]}, which is {name}"
    return KeyLimitError(
        f"model '{model}': {told} for this key; try again in {reached.wait_s} s",
        "quota" if reached.limit == "tokens_per_day" else "rate_limit",
        reached.wait_s,
    )
