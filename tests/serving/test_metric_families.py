"""Families as Prometheus reads them."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from caraway_core.process.durations import Durations, Labels
from caraway_serving.metric_families import Families, Family, Page, counter, gauge, histogram

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


def family(row: Family[Any], values: Any) -> Metric:
    """Return the family of a row that reads these values."""
    (made,) = FAMILIES.families_of((row,), values)
    return made


def gauges(labels: str = "k") -> Family[Any]:
    return gauge("rows", "some help", labels, lambda of: of)


def counters(labels: str = "k") -> Family[Any]:
    return counter("done", "some help", labels, lambda of: of)


def durations(labels: str = "k") -> Family[Any]:
    return histogram("took", "some help", labels, lambda of: of)


def test_every_name_begins_with_the_prefix() -> None:
    assert FAMILIES.name("up") == "caraway_up"
    made = [
        family(gauges(""), 1),
        family(counters(), {"x": 1}),
        family(durations(), _durations(("x",), 1)),
    ]
    assert all(name.startswith("caraway_") for name, _ in samples(*made))


def test_values_are_told_with_their_labels() -> None:
    found = samples(family(gauges("kind table"), {("a", "b"): 2, ("a", "c"): 0.5}))
    assert found == {("caraway_rows", ("a", "b")): 2, ("caraway_rows", ("a", "c")): 0.5}
    assert samples(family(counters(), {"x": 3})) == {("caraway_done_total", ("x",)): 3}
    assert samples(family(gauges(""), 0)) == {("caraway_rows", ()): 0}


def test_several_states_have_a_label_and_those_without_a_value_are_left_out() -> None:
    (made,) = FAMILIES.of_each((gauges("table"),), {"a": 1, "b": None, "c": 0})
    assert samples(made) == {("caraway_rows", ("a",)): 1, ("caraway_rows", ("c",)): 0}


def test_counter_without_labels_keeps_its_one_value() -> None:
    assert samples(family(counters(""), 7)) == {("caraway_done_total", ()): 7}


@pytest.mark.parametrize("label", HOSTILE)
def test_labels_of_any_text_are_read_back(label: str) -> None:
    assert samples(family(gauges("table"), {label: 1})) == {("caraway_rows", (label,)): 1}


def test_family_without_values_is_announced_and_empty() -> None:
    for made in (
        family(gauges(), {}),
        family(gauges(""), None),
        family(counters(), {}),
        family(durations(), Durations()),
    ):
        assert "some help" in page(made) and not samples(made)


def test_a_page_reads_the_state_whenever_it_is_rendered() -> None:
    state = {"x": 1}
    shown = Page(lambda: FAMILIES.families_of((gauges(),), state))
    state["x"] = 2
    assert b'caraway_rows{k="x"} 2.0' in shown.render()
    state["x"] = 3
    assert b'caraway_rows{k="x"} 3.0' in shown.render()


def _durations(labels: Labels, *values_ms: float) -> Durations:
    durations = Durations()
    for value in values_ms:
        durations.add(labels, value)
    return durations


def test_histogram_counts_up_to_each_bound_and_sums() -> None:
    made = family(durations(), _durations(("x",), 0.5, 1, 30, 70_000))
    found = samples(made)
    buckets = {labels[-1]: value for (name, labels), value in found.items() if "bucket" in name}
    assert buckets["1.0"] == 2 and buckets["25.0"] == 2 and buckets["50.0"] == 3
    assert buckets["60000.0"] == 3 and buckets["+Inf"] == 4
    assert list(buckets.values()) == sorted(buckets.values())
    assert found[("caraway_took_count", ("x",))] == 4
    assert found[("caraway_took_sum", ("x",))] == 70_031.5


def test_histogram_without_labels_is_there_before_its_first_duration() -> None:
    assert samples(family(durations(""), Durations()))["caraway_took_count", ()] == 0


def test_page_is_made_of_what_there_was_when_it_was_asked_for() -> None:
    """Values are counted by other threads; a family must not change behind the page."""
    values: dict[Labels, int] = {("a",): 1}
    made = family(counters(), values)
    values[("a",)] = 2
    values[("b",)] = 1
    assert samples(made) == {("caraway_done_total", ("a",)): 1}
