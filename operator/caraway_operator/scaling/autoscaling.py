"""How many executors the work asks for, from what schedulers said of their load lately."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from caraway_operator.scheduler_link import Load

_MOST_SAMPLES = 5000


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between what the number may be, and when it changes."""

    least: int
    most: int
    queued_per_executor: int = 4
    memory_share: float = 0.8
    up_window_s: float = 30.0
    down_window_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Sample:
    """What the load asked for at a time, and why."""

    at: float
    asked: int
    why: str


@dataclass(frozen=True, slots=True)
class Decision:
    """How many there shall be, and why."""

    replicas: int
    why: str = ""


@dataclass(slots=True)
class History:
    """Samples of the last while, the oldest first."""

    _samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=_MOST_SAMPLES))

    def add(self, sample: Sample, window_s: float) -> None:
        """Keep a sample, and all that is needed to judge the window that ends with it."""
        self._samples.append(sample)
        while len(self._samples) > 1 and self._samples[1].at <= sample.at - window_s:
            self._samples.popleft()

    def clear(self) -> None:
        """Forget: what was measured in a rollout says nothing of the time after it."""
        self._samples.clear()

    @property
    def samples(self) -> Sequence[Sample]:
        return tuple(self._samples)


def sample(loads: Sequence[Load], current: int, bounds: Bounds, now: float) -> Sample:
    """Say how many executors the load of all schedulers asks for."""
    queued = sum(load.queued for load in loads)
    running = sum(load.running for load in loads)
    busy = max(current, 1)
    asked, why = current, "the executors are as busy as they should be"
    if queued >= bounds.queued_per_executor:
        more = math.ceil(queued / bounds.queued_per_executor)
        # At most twice as many at a time: what waits now may be short.
        asked, why = current + min(more, busy), f"{queued} statements wait"
    elif not queued and running < current:
        # What runs keeps at least one executor busy for each statement.
        asked, why = max(running, current - 1), f"{running} statements run, and none waits"
    share = _memory_share(loads)
    needed = math.ceil(current * share / bounds.memory_share) if share else 0
    if needed > asked:
        asked, why = needed, f"{share:.0%} of the executors' memory is in use"
    return Sample(now, max(bounds.least, min(bounds.most, asked)), why)


def decide(samples: Sequence[Sample], current: int, bounds: Bounds, now: float) -> Decision:
    """Change the number only if all samples of a window ask for it, and the window is full."""
    if current < bounds.least:
        return Decision(bounds.least, f"there shall be at least {bounds.least}")
    if current > bounds.most:
        return Decision(bounds.most, f"there shall be at most {bounds.most}")
    up = _window(samples, now, bounds.up_window_s)
    if up and (asked := min(one.asked for one in up)) > current:
        return Decision(asked, up[-1].why)
    down = _window(samples, now, bounds.down_window_s)
    if down and (asked := max(one.asked for one in down)) < current:
        return Decision(asked, down[-1].why)
    return Decision(current)


def _window(samples: Sequence[Sample], now: float, window_s: float) -> list[Sample]:
    """Return the samples of a window; none if nothing is known of its beginning."""
    if not samples or samples[0].at > now - window_s:
        return []
    return [one for one in samples if one.at >= now - window_s] or [samples[-1]]


def _memory_share(loads: Sequence[Load]) -> float:
    # Every scheduler knows all executors: one that answers is enough.
    usages = max((load.memory for load in loads), key=len, default=())
    limit = sum(usage.limit_bytes for usage in usages)
    return sum(usage.used_bytes for usage in usages) / limit if limit else 0.0
