"""Limits on the calls of one model: how many at once, how many a minute, how many tokens."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.ids import PrincipalId

_MINUTE_S = 60.0
_DAY_S = 86_400.0
_QUEUE_S = 30.0


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """The limits of a model; None means no limit."""

    concurrent: int | None = 256
    queued: int = 256
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None
    requests_per_minute_per_key: int | None = None
    tokens_per_minute_per_key: int | None = None
    tokens_per_day_per_key: int | None = None


class KeyLimitError(ModelAwayError):
    """A key has used up its share of a model; other keys may call it."""


class KeyLimits:
    """Counts the calls of one key to one model in this process."""

    def __init__(self, model: str, settings: LimitSettings, clock: Callable[[], float]) -> None:
        self._model = model
        self._settings = settings
        self._clock = clock
        self._requests: deque[float] = deque()
        self._tokens: deque[tuple[float, int]] = deque()
        self._tokens_of_minute = 0
        self._day = 0
        self._tokens_of_day = 0

    def take(self) -> None:
        """Count a call.

        Raises:
            KeyLimitError: the key may make no more for a while; it says until when.
        """
        now = self._clock()
        self._forget(now)
        settings = self._settings
        most = settings.tokens_per_day_per_key
        if most is not None and self._tokens_of_day >= most:
            told = f"the {most} tokens of 'tokens_per_day_per_key' are used up"
            raise self._used_up(told, "quota", _DAY_S - now % _DAY_S)
        most = settings.tokens_per_minute_per_key
        if most is not None and self._tokens_of_minute >= most:
            told = f"more than {most} tokens a minute, which is 'tokens_per_minute_per_key'"
            raise self._used_up(told, "rate_limit", self._tokens[0][0] + _MINUTE_S - now)
        most = settings.requests_per_minute_per_key
        if most is not None and len(self._requests) >= most:
            told = f"more than {most} requests a minute, which is 'requests_per_minute_per_key'"
            raise self._used_up(told, "rate_limit", self._requests[0] + _MINUTE_S - now)
        if most is not None:
            self._requests.append(now)

    def count_tokens(self, tokens: int) -> None:
        """Count what a call used."""
        now = self._clock()
        self._forget(now)
        if self._settings.tokens_per_minute_per_key is not None:
            self._tokens.append((now, tokens))
            self._tokens_of_minute += tokens
        self._tokens_of_day += tokens

    def _forget(self, now: float) -> None:
        while self._requests and self._requests[0] <= now - _MINUTE_S:
            self._requests.popleft()
        while self._tokens and self._tokens[0][0] <= now - _MINUTE_S:
            self._tokens_of_minute -= self._tokens.popleft()[1]
        if (day := int(now // _DAY_S)) != self._day:
            self._day, self._tokens_of_day = day, 0

    def _used_up(
        self, told: str, type_: Literal["quota", "rate_limit"], left_s: float
    ) -> KeyLimitError:
        wait_s = max(1, round(left_s + 0.5))
        message = f"model '{self._model}': {told} for this key; try again in {wait_s} s"
        return KeyLimitError(message, type_, wait_s)


class ModelLimits:
    """Counts the calls of one model in this process."""

    def __init__(
        self, model: str, settings: LimitSettings, clock: Callable[[], float] = time.time
    ) -> None:
        self._model = model
        self._settings = settings
        self._clock = clock
        self._requests: deque[float] = deque()
        self._tokens: deque[tuple[float, int]] = deque()
        self._tokens_of_minute = 0
        self._day = 0
        self._tokens_of_day = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self._has_keys = any(
            each is not None
            for each in (
                settings.requests_per_minute_per_key,
                settings.tokens_per_minute_per_key,
                settings.tokens_per_day_per_key,
            )
        )
        self._keys: dict[PrincipalId | None, KeyLimits] = {}
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
        self._check_tokens()
        if (limits := self._of(key)) is not None:
            limits.take()
        await self._enter()
        try:
            self._count_request()
            yield
        finally:
            self._leave()

    def _of(self, key: PrincipalId | None) -> KeyLimits | None:
        if not self._has_keys:
            return None
        if (limits := self._keys.get(key)) is None:
            limits = self._keys[key] = KeyLimits(self._model, self._settings, self._clock)
        return limits

    def count_tokens(self, tokens: int, key: PrincipalId | None = None) -> None:
        """Count what a call of a key used."""
        now = self._clock()
        if (limits := self._of(key)) is not None:
            limits.count_tokens(tokens)
        if self._settings.tokens_per_minute is not None:
            self._tokens.append((now, tokens))
            self._tokens_of_minute += tokens
        self._begin_day(now)
        self._tokens_of_day += tokens

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
                # The place passes on, so that nobody overtakes those that wait.
                place.set_result(None)
                return
        self.active -= 1
        if not self.active:
            self._idle.set()

    def _count_request(self) -> None:
        most = self._settings.requests_per_minute
        if most is None:
            return
        now = self._clock()
        while self._requests and self._requests[0] <= now - _MINUTE_S:
            self._requests.popleft()
        if len(self._requests) >= most:
            wait_s = max(1, round(self._requests[0] + _MINUTE_S - now + 0.5))
            raise ModelAwayError(
                f"model '{self._model}': more than {most} requests a minute, which is its "
                f"'requests_per_minute'; try again in {wait_s} s",
                "rate_limit",
                wait_s,
            )
        self._requests.append(now)

    def _check_tokens(self) -> None:
        now = self._clock()
        self._check_day(now)
        most = self._settings.tokens_per_minute
        if most is None:
            return
        while self._tokens and self._tokens[0][0] <= now - _MINUTE_S:
            self._tokens_of_minute -= self._tokens.popleft()[1]
        if self._tokens_of_minute >= most:
            wait_s = max(1, round(self._tokens[0][0] + _MINUTE_S - now + 0.5))
            raise ModelAwayError(
                f"model '{self._model}': more than {most} tokens a minute, which is its "
                f"'tokens_per_minute'; try again in {wait_s} s",
                "rate_limit",
                wait_s,
            )

    def _check_day(self, now: float) -> None:
        self._begin_day(now)
        most = self._settings.tokens_per_day
        if most is not None and self._tokens_of_day >= most:
            raise ModelError(
                f"model '{self._model}': the {most} tokens of its 'tokens_per_day' are used up; "
                "they are reset at 00:00 UTC, or raise the param",
                "quota",
            )

    def _begin_day(self, now: float) -> None:
        if (day := int(now // _DAY_S)) != self._day:
            self._day, self._tokens_of_day = day, 0
