"""Builds Prometheus metrics from plain state, and defines their names."""

from collections.abc import Mapping

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from caraway_core.process.durations import Durations, Labels


class Families:
    """Builds metrics whose names have a prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def name(self, name: str) -> str:
        return f"{self._prefix}{name}"

    def gauge(self, name: str, help_: str, value: float) -> Metric:
        return GaugeMetricFamily(self.name(name), help_, value=value)

    def gauges(
        self, name: str, help_: str, labels: Labels, values: Mapping[Labels, float]
    ) -> Metric:
        family = GaugeMetricFamily(self.name(name), help_, labels=labels)
        for key, value in list(values.items()):
            family.add_metric(key, value)
        return family

    def counter(
        self, name: str, help_: str, labels: Labels, values: Mapping[Labels, int]
    ) -> Metric:
        family = CounterMetricFamily(self.name(name), help_, labels=labels)
        for key, value in list(values.items()):
            family.add_metric(key, value)
        return family

    def histogram(self, name: str, help_: str, labels: Labels, durations: Durations) -> Metric:
        family = HistogramMetricFamily(self.name(name), help_, labels=labels)
        for key in list(durations.buckets):
            family.add_metric(key, durations.cumulative(key), sum_value=durations.sums_ms[key])
        return family
