"""Builds Prometheus metrics from plain state.

A family is a row of a table: what it is called, what it means, its labels, and how to read its
values from the state. Values are read when a page is asked for.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from prometheus_client import CollectorRegistry, exposition
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from caraway_core.process.durations import Durations, Labels

T = TypeVar("T")
Values = float | Mapping[Any, float] | Durations
"""One value, values by a label or by a tuple of labels, or the durations of a histogram."""


@dataclass(frozen=True, slots=True)
class Family(Generic[T]):
    """A family of metrics; `labels` are their names with spaces between them."""

    kind: Callable[..., Any]
    name: str
    help: str
    labels: str
    read: Callable[[T], Values | None]
    """Returns None if there is no value."""


Table = Sequence[Family[T]]


def gauge(name: str, help_: str, labels: str, read: Callable[[T], Values | None]) -> Family[T]:
    """Return a row of values that rise and fall."""
    return Family(GaugeMetricFamily, name, help_, labels, read)


def counter(name: str, help_: str, labels: str, read: Callable[[T], Values | None]) -> Family[T]:
    """Return a row of values that only rise; the name on the page ends in `_total`."""
    return Family(CounterMetricFamily, name, help_, labels, read)


def histogram(name: str, help_: str, labels: str, read: Callable[[T], Durations]) -> Family[T]:
    """Return a row of durations."""
    return Family(HistogramMetricFamily, name, help_, labels, read)


class Families:
    """Builds metrics whose names have a prefix."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def name(self, name: str) -> str:
        return f"{self._prefix}{name}"

    def families_of(self, table: Table[T], state: T) -> Iterable[Metric]:
        """Yield the families of a table, read from a state."""
        for row in table:
            yield self._filled(row, row.read(state))

    def of_each(self, table: Table[T], states: Mapping[Any, T]) -> Iterable[Metric]:
        """Yield the families of a table with one label, by which there are several states."""
        for row in table:
            values: dict[Any, Any] = {key: row.read(state) for key, state in states.items()}
            yield self._filled(row, {key: each for key, each in values.items() if each is not None})

    def _filled(self, row: Family[T], values: Values | None) -> Metric:
        family = row.kind(self.name(row.name), row.help, labels=row.labels.split())
        if isinstance(values, Durations):
            keys: list[Labels] = list(values.buckets) if row.labels else [()]
            for key in keys:
                total = values.sums_ms[key]
                family.add_metric(key, values.cumulative(key), sum_value=total)
        elif isinstance(values, Mapping):
            for label, value in list(values.items()):
                family.add_metric((label,) if isinstance(label, str) else label, value)
        elif values is not None:
            family.add_metric((), values)
        metric: Metric = family
        return metric


CONTENT_TYPE = exposition.CONTENT_TYPE_LATEST


class Page(Collector):
    """A page of metrics, which are collected when it is rendered."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        return self._collect()

    def registry(self) -> CollectorRegistry:
        """Return a registry that has this page."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return registry

    def render(self) -> bytes:
        """Return the page in the Prometheus text format."""
        return exposition.generate_latest(self.registry())
