"""Clocks, which tests replace by ones that they set."""

from datetime import datetime
from typing import Protocol


class SecondsClock(Protocol):
    """Returns seconds, such as `time.monotonic` and `time.time` do."""

    def __call__(self) -> float: ...


class DateClock(Protocol):
    """Returns the date and time, with a zone."""

    def __call__(self) -> datetime: ...
