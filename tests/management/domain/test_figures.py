from datetime import timedelta
from typing import Any

from caraway_management.domain import figures
from caraway_management.domain.monitoring import Sample
from tests.kit.management import BEGAN


def sample(second: float, **values: Any) -> Sample:
    return Sample(BEGAN + timedelta(seconds=second), {"instances_ready": 1, **values})


def test_figures_of_a_window() -> None:
    found = [
        sample(0, cpu_seconds=10, cpu_cores=2, memory_bytes=100, queries=5, rows_ingested=7),
        sample(30, cpu_seconds=40, cpu_cores=2, memory_bytes=300, queries=9, rows_ingested=8),
        # The runtime began again.
        sample(60, cpu_seconds=6, cpu_cores=2, memory_bytes=200, queries=1, rows_ingested=0,
               executors=3),
    ]  # fmt: skip
    made = figures.summarize(found)
    assert made["metrics"]["pod"]["cpu_usage_percent"] == 30.0
    assert made["metrics"]["pod"]["memory_usage_bytes"] == 200
    assert made["metrics"]["pod"]["disk_read_bytes"] is None
    assert made["ingestion"] == {"rows_ingested": 1, "bytes_ingested": None}
    assert made["requests"]["queries"] == 5
    assert made["requests"]["http_5xx"] is None
    assert made["cluster"]["active_executors_count"] == 3


def test_nothing_is_known_without_samples() -> None:
    for found in ([], [sample(0, queries=1)]):
        made = figures.summarize(found)
        assert made["metrics"]["pod"]["cpu_usage_percent"] is None
        assert made["requests"]["queries"] is None
    assert figures.points([]) == []


def test_a_course_has_a_bounded_number_of_points() -> None:
    found = [
        sample(30 * number, queries=number, cpu_seconds=number, cpu_cores=1)
        for number in range(20_000)
    ]
    points = figures.points(found)
    assert len(points) == 100
    assert points[-1]["timestamp"] == found[-1].at.isoformat()
    assert sum(point["queries"] for point in points[1:]) == 19_800
    few = figures.points(found[:3])
    assert [point["queries"] for point in few] == [None, 1, 1]
