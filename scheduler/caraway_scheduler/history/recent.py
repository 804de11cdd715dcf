"""Keeps how busy this process was during the last hour, as numbers at regular times."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

EVERY_S = 15.0
_HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class Sample:
    """Counters since the start of the process, and values that hold at the moment."""

    at_ms: int
    counters: Mapping[str, float] = field(default_factory=dict)
    gauges: Mapping[str, float] = field(default_factory=dict)


class RecentSamples:
    """The samples of the last hour; counters are kept as what was added since the one before."""

    def __init__(self, most: int = int(_HOUR_S / EVERY_S)) -> None:
        self._kept: deque[Sample] = deque(maxlen=most)
        self._last: Sample | None = None

    def add(self, sample: Sample) -> None:
        """Keep a sample; the first one is only compared with."""
        last, self._last = self._last, sample
        if last is None:
            return
        added = {
            name: max(0.0, value - last.counters.get(name, 0.0))
            for name, value in sample.counters.items()
        }
        self._kept.append(Sample(sample.at_ms, added, sample.gauges))

    def columns(self) -> dict[str, list[float | None]]:
        """Return the samples by column, oldest first; `at_ms` has their times."""
        kept = list(self._kept)
        names = dict.fromkeys(name for each in kept for name in (*each.counters, *each.gauges))
        found: dict[str, list[float | None]] = {"at_ms": [each.at_ms for each in kept]}
        for name in names:
            found[name] = [each.counters.get(name, each.gauges.get(name)) for each in kept]
        return found
