"""Families as Prometheus reads them."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from caraway_core.process.durations import Durations, Labels
from caraway_serving.metric_families import Families

FAMILIES = Families("caraway_")
HOSTILE = ['a"b', "back\\slash", "new\nline", "", "é", "{x}"]


def page(*metrics: Metric) -> str:
    class Collector:
        def collect(self) -> list[Metric]:
            return list(metrics)

    registry = CollectorRegistry()
    registry.register(Collector())
    return generate_latest(registry).decode()


def samples(*metrics: Metric) -> dict[tuple[str, Labels], float]:
    """Return the samples as a scraper parses them, by name and values of labels."""
    return {
        (sample.name, tuple(sample.labels[key] for key in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(page(*metrics))
        for sample in family.samples
    }


def test_every_name_begins_with_the_prefix() -> None:
    assert FAMILIES.name("up") == "caraway_up"
    made = [
        FAMILIES.gauge("a", "h", 1),
        FAMILIES.gauges("b", "h", ("k",), {("x",): 1}),
        FAMILIES.counter("c", "h", ("k",), {("x",): 1}),
        FAMILIES.histogram("d", "h", ("k",), _durations(("x",), 1)),
    ]
    assert all(name.startswith("caraway_") for name, _ in samples(*made))


def test_values_are_told_with_their_labels() -> None:
    gauges = FAMILIES.gauges("rows", "h", ("kind", "table"), {("a", "b"): 2, ("a", "c"): 0.5})
    assert samples(gauges) == {("caraway_rows", ("a", "b")): 2, ("caraway_rows", ("a", "c")): 0.5}
    counter = FAMILIES.counter("done", "h", ("kind",), {("x",): 3})
    assert samples(counter) == {("caraway_done_total", ("x",)): 3}
    assert samples(FAMILIES.gauge("up", "h", 0)) == {("caraway_up", ()): 0}


def test_counter_without_labels_keeps_its_one_value() -> None:
    assert samples(FAMILIES.counter("hits", "h", (), {(): 7})) == {("caraway_hits_total", ()): 7}


@pytest.mark.parametrize("label", HOSTILE)
def test_labels_of_any_text_are_read_back(label: str) -> None:
    found = samples(FAMILIES.gauges("rows", "h", ("table",), {(label,): 1}))
    assert found == {("caraway_rows", (label,)): 1}


def test_family_without_values_is_announced_and_empty() -> None:
    for family in (
        FAMILIES.gauges("a", "some help", ("k",), {}),
        FAMILIES.counter("a", "some help", ("k",), {}),
        FAMILIES.histogram("a", "some help", ("k",), Durations()),
    ):
        assert "some help" in page(family) and not samples(family)


def _durations(labels: Labels, *values_ms: float) -> Durations:
    durations = Durations()
    for value in values_ms:
        durations.add(labels, value)
    return durations


def test_histogram_counts_up_to_each_bound_and_sums() -> None:
    made = FAMILIES.histogram("took", "h", ("k",), _durations(("x",), 0.5, 1, 30, 70_000))
    found = samples(made)
    buckets = {labels[-1]: value for (name, labels), value in found.items() if "bucket" in name}
    assert buckets["1.0"] == 2 and buckets["25.0"] == 2 and buckets["50.0"] == 3
    assert buckets["60000.0"] == 3 and buckets["+Inf"] == 4
    assert list(buckets.values()) == sorted(buckets.values())
    assert found[("caraway_took_count", ("x",))] == 4
    assert found[("caraway_took_sum", ("x",))] == 70_031.5


def test_page_is_made_of_what_there_was_when_it_was_asked_for() -> None:
    """Values are counted by other threads; the family must not change behind the page."""
    values: dict[Labels, int] = {("a",): 1}
    family = FAMILIES.counter("c", "h", ("k",), values)
    values[("a",)] = 2
    values[("b",)] = 1
    assert samples(family) == {("caraway_c_total", ("a",)): 1}
