from pathlib import Path

import pytest

from caraway_management.domain import samples
from tests.kit.deadlines import eventually
from tests.kit.runtime import running

MANIFEST = """
    datasets:
      - {from: 'file:people.csv', name: people}
      - {from: 'file:absent.csv', name: absent}
"""
PAGE = """
# TYPE acme_caraway_build info
acme_caraway_build_info{cores="4",version="1"} 1.0
# TYPE process_cpu_seconds counter
process_cpu_seconds_total 12.5
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 1000.0
# TYPE acme_engine_memory_bytes gauge
acme_engine_memory_bytes{engine="main"} 200.0
acme_engine_memory_bytes{engine="apart"} 30.0
# TYPE acme_query_failures counter
acme_query_failures_total{protocol="http",error="A"} 2.0
acme_query_failures_total{protocol="flight",error="A"} 3.0
acme_query_failures_total{protocol="flightsql",error="B"} 4.0
# TYPE acme_http_requests counter
acme_http_requests_total{method="GET",path="/",status="200"} 10.0
acme_http_requests_total{method="GET",path="/",status="503"} 5.0
acme_http_requests_total{method="GET",path="/",status="500"} 1.0
# TYPE acme_query_duration_ms histogram
acme_query_duration_ms_bucket{protocol="http",le="10.0"} 1.0
acme_query_duration_ms_bucket{protocol="http",le="+Inf"} 2.0
acme_query_duration_ms_bucket{protocol="flight",le="10.0"} 4.0
acme_query_duration_ms_bucket{protocol="flight",le="+Inf"} 4.0
# TYPE acme_dataset_load_state gauge
acme_dataset_load_state{dataset="a.b"} 3.0
# TYPE acme_dataset_acceleration_refresh_errors counter
acme_dataset_acceleration_refresh_errors_total{dataset="a.b"} 2.0
"""


def test_values_of_a_page_with_a_prefix() -> None:
    assert samples.read(PAGE) == {
        "cpu_cores": 4,
        "cpu_seconds": 12.5,
        "memory_bytes": 1230,
        "queries": 0,
        "query_failures": 9,
        "flight_failures": 7,
        "http_requests": 16,
        "http_5xx": 6,
        "llm_failures": 0,
        "query_durations": {"10.0": 5, "+Inf": 6},
        "refresh_errors": {"a.b": 2},
        "datasets": {"a.b": 3},
    }


@pytest.mark.parametrize(
    ("directory", "datasets", "disk"),
    [(None, (), None), (900, (), 900), (900, (300, 400), 900), (50, (300, 400), 700),
     (None, (300,), 300)],
)  # fmt: skip
def test_the_disk_is_the_data_directory_or_what_is_stored_elsewhere(
    directory: int | None, datasets: tuple[int, ...], disk: int | None
) -> None:
    lines = [f"acme_data_directory_size_bytes {directory}"] if directory else []
    for number, size in enumerate(datasets):
        lines.append(f'acme_dataset_acceleration_size_bytes{{dataset="{number}"}} {size}')
    assert samples.read(PAGE + "\n".join(lines) + "\n").get("disk_bytes") == disk


def test_instances_are_added_and_the_worst_state_is_kept() -> None:
    first = samples.read(PAGE)
    second = first | {"datasets": {"a.b": 1, "c": 1}, "refresh_errors": {"c": 1}}
    combined = samples.combine([first, second], 3)
    assert (combined["instances"], combined["instances_ready"]) == (3, 2)
    assert (combined["cpu_cores"], combined["query_failures"]) == (8, 18)
    assert combined["query_durations"] == {"10.0": 10, "+Inf": 12}
    stored = [{"disk_bytes": 5}, {"disk_bytes": 7}]
    assert samples.combine(stored, 2)["disk_bytes"] == 7
    assert combined["datasets"] == {"a.b": 3, "c": 1}
    assert combined["refresh_errors"] == {"a.b": 2, "c": 1}
    assert samples.combine([], 1) == {"instances": 1, "instances_ready": 0}


def test_limits_follow_from_the_config() -> None:
    values = {"instances_ready": 2, "memory_bytes": 1}
    config = {"storage_size_gb": 10, "resources": {"limits": {"memory": "1Gi"}}}
    assert samples.with_limits(values, config) == values | {
        "disk_limit_bytes": 10 * 1000**3,
        "memory_limit_bytes": 2 * 1024**3,
    }
    assert samples.with_limits({}, {}) == {"disk_limit_bytes": 256 * 1000**3}


def test_what_is_no_metrics_page_is_refused() -> None:
    with pytest.raises(ValueError, match="could not convert string to float"):
        samples.read("<html>{")


async def test_names_are_those_that_a_runtime_exports(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id\n1\n")
    async with running(tmp_path, MANIFEST) as runtime:
        await runtime.sql("SELECT * FROM people", accept="application/json")
        await runtime.sql("SELECT nope FROM people")

        async def is_counted() -> bool:
            page = (await runtime.metrics.get("/metrics")).text
            values = samples.read(page)
            return bool(values["http_requests"] >= 2)

        await eventually(is_counted, "both requests are counted", 30)
        size = runtime.services.data_size
        assert size is not None
        size.last = await size.measure()
        values = samples.read((await runtime.metrics.get("/metrics")).text)
    assert (values["queries"], values["query_failures"], values["flight_failures"]) == (2, 1, 0)
    assert values["datasets"] == {"people": 1, "absent": 3}
    assert values["query_durations"]["+Inf"] == 2
    assert values["cpu_seconds"] > 0
    assert values["cpu_cores"] >= 1
    assert values["memory_bytes"] > 1_000_000
    assert values["executors"] == 1
    assert values["disk_bytes"] == size.last > 0
