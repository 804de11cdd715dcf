"""Decides the number of executors from recent samples of the schedulers' load."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from caraway_operator.scheduler_client import SchedulerLoad

_MOST_SAMPLES = 5000


@dataclass(frozen=True, slots=True)
class AutoscalingBounds:
    """Bounds of the number of executors, and thresholds for changing it."""

    least: int
    most: int
    queued_per_executor: int = 4
    memory_share: float = 0.8
    up_window_s: float = 30.0
    down_window_s: float = 300.0


@dataclass(frozen=True, slots=True)
class LoadSample:
    """The number of executors that the load called for at one time, and why."""

    at: float
    desired: int
    reason: str


@dataclass(frozen=True, slots=True)
class AutoscalingDecision:
    """The number of executors, and why it changes."""

    replicas: int
    reason: str = ""


@dataclass(slots=True)
class LoadHistory:
    """Recent samples, oldest first."""

    _samples: deque[LoadSample] = field(default_factory=lambda: deque(maxlen=_MOST_SAMPLES))

    def add(self, sample: LoadSample, window_s: float) -> None:
        """Add a sample, and drop those before the window that ends with it."""
        self._samples.append(sample)
        while len(self._samples) > 1 and self._samples[1].at <= sample.at - window_s:
            self._samples.popleft()

    def clear(self) -> None:
        """Drop all samples. Those taken during a rollout are not representative."""
        self._samples.clear()

    @property
    def samples(self) -> Sequence[LoadSample]:
        """The samples, oldest first."""
        return tuple(self._samples)


def sample_load(
    loads: Sequence[SchedulerLoad], current: int, bounds: AutoscalingBounds, now: float
) -> LoadSample:
    """Return how many executors the load of all schedulers calls for."""
    queued = sum(load.queued for load in loads)
    running = sum(load.running for load in loads)
    busy = max(current, 1)
    desired, reason = current, "the load is within its bounds"
    if queued >= bounds.queued_per_executor:
        more = math.ceil(queued / bounds.queued_per_executor)
        # At most doubled at a time, because the queued statements may be short.
        desired, reason = current + min(more, busy), f"{queued} statements are queued"
    elif not queued and running < current:
        # Each running statement keeps at least one executor busy.
        desired = max(running, current - 1)
        reason = f"{running} statements are running and none is queued"
    share = _memory_share(loads)
    needed = math.ceil(current * share / bounds.memory_share) if share else 0
    if needed > desired:
        desired, reason = needed, f"{share:.0%} of the executors' memory is in use"
    return LoadSample(now, max(bounds.least, min(bounds.most, desired)), reason)


def decide_replicas(
    samples: Sequence[LoadSample], current: int, bounds: AutoscalingBounds, now: float
) -> AutoscalingDecision:
    """Change the number if all samples of a full window call for it."""
    if current < bounds.least:
        return AutoscalingDecision(bounds.least, f"the minimum is {bounds.least}")
    if current > bounds.most:
        return AutoscalingDecision(bounds.most, f"the maximum is {bounds.most}")
    up = _window(samples, now, bounds.up_window_s)
    if up and (desired := min(one.desired for one in up)) > current:
        return AutoscalingDecision(desired, up[-1].reason)
    down = _window(samples, now, bounds.down_window_s)
    if down and (desired := max(one.desired for one in down)) < current:
        return AutoscalingDecision(desired, down[-1].reason)
    return AutoscalingDecision(current)


def _window(samples: Sequence[LoadSample], now: float, window_s: float) -> list[LoadSample]:
    """Return the samples of a window, or none if the samples do not cover its beginning."""
    if not samples or samples[0].at > now - window_s:
        return []
    return [one for one in samples if one.at >= now - window_s] or [samples[-1]]


def _memory_share(loads: Sequence[SchedulerLoad]) -> float:
    # Every scheduler knows all executors, so the answer of one is enough.
    usages = max((load.memory for load in loads), key=len, default=())
    limit = sum(usage.limit_bytes for usage in usages)
    return sum(usage.used_bytes for usage in usages) / limit if limit else 0.0
