"""Clocks and sleeps, which tests replace by ones that they set."""

from collections.abc import Awaitable
from datetime import datetime
from typing import Protocol


class SecondsClock(Protocol):
    """Returns seconds, such as `time.monotonic` and `time.time` do."""

    def __call__(self) -> float: ...


class NanosecondsClock(Protocol):
    """Returns nanoseconds since 1970, as `time.time_ns` does."""

    def __call__(self) -> int: ...


class DateClock(Protocol):
    """Returns the date and time, with a zone."""

    def __call__(self) -> datetime: ...


class Sleep(Protocol):
    """Blocks the thread for seconds, as `time.sleep` does."""

    def __call__(self, seconds: float, /) -> None: ...


class AsyncSleep(Protocol):
    """Returns what the task awaits for seconds, as `asyncio.sleep` does."""

    def __call__(self, seconds: float, /) -> Awaitable[object]: ...
