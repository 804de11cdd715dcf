"""Engines, refresh modes and thresholds of accelerations, with their defaults."""

from typing import Any

import pytest

from caraway_core.manifest.building import accelerating
from caraway_core.manifest.shape.acceleration import AccelerationSection


@pytest.mark.parametrize(
    ("engine", "mode", "ours"),
    [
        (None, None, "arrow"), (None, "memory", "arrow"), (None, "file", "file"),
        ("arrow", "file", "arrow"), ("duckdb", None, "file"), ("sqlite", "memory", "file"),
    ],
)  # fmt: skip
def test_engines_that_keep_files_are_one(engine: str | None, mode: str | None, ours: str) -> None:
    assert accelerating.engine_of(engine, mode) == ours


def test_refresh_modes_are_those_of_the_connector() -> None:
    assert accelerating.refresh_mode_of(None, "cdc") == "changes"
    assert accelerating.refresh_mode_of(None, "debezium") == "changes"
    assert accelerating.refresh_mode_of("full", "cdc") == "full"
    assert accelerating.refresh_mode_of(None, "file") == "full"


@pytest.mark.parametrize(
    ("trigger", "text", "value"),
    [("time_interval", "90s", 90.0), ("time_interval", "1h", 3600.0), ("stream_batches", "12", 12)],
)
def test_thresholds_are_seconds_or_batches(trigger: str, text: str, value: float) -> None:
    assert accelerating.threshold(trigger, text) == value


@pytest.mark.parametrize(
    ("trigger", "text", "message"),
    [
        ("refresh_complete", "1", "needs the 'snapshots_trigger' time_interval or stream_batches"),
        ("", "1", "needs the 'snapshots_trigger'"),
        ("time_interval", "soon", "is not a duration"),
        ("time_interval", "0s", "'0s' is no threshold"),
        ("stream_batches", "0", "'0' is no threshold"),
        ("stream_batches", "-1", "'-1' is no threshold"),
        ("stream_batches", "1.5", "is no threshold"),
        ("stream_batches", "1s", "is no threshold"),
        ("stream_batches", "9999999999", "is no threshold"),
        ("stream_batches", "", "is no threshold"),
        ("stream_batches", "²", "is no threshold"),
    ],
)
def test_what_is_no_threshold_is_refused(trigger: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        accelerating.threshold(trigger, text)


@pytest.mark.parametrize("shape", [None, AccelerationSection(enabled=False)])
def test_what_is_off_is_no_acceleration(shape: AccelerationSection | None) -> None:
    assert accelerating.acceleration(shape, "file") is None


@pytest.mark.parametrize(
    ("keys", "mode"),
    [
        ({}, "memory"),
        ({"engine": "arrow", "mode": "file"}, "memory"),
        ({"engine": "duckdb"}, "file"),
        ({"engine": "duckdb", "mode": "memory"}, "file"),
        ({"mode": "file_create"}, "file_create"),
    ],
)
def test_only_files_outlast_a_restart(keys: dict[str, Any], mode: str) -> None:
    made = accelerating.acceleration(AccelerationSection(**keys), "file")
    assert made is not None
    assert made.mode == mode


def test_what_is_switched_off_has_no_settings() -> None:
    made = accelerating.acceleration(
        AccelerationSection(
            refresh_retry_enabled=False, refresh_retry_max_attempts=3, refresh_jitter_max=5.0,
            retention_sql="DELETE FROM t", snapshots_trigger="stream_batches",
            snapshots_trigger_threshold="7", primary_key="(a, b)", indexes={"c": "unique"},
        ),
        "file",
    )  # fmt: skip
    assert made is not None
    assert (made.refresh.retry_max_attempts, made.refresh.jitter_max_s) == (0, 0.0)
    assert made.retention is None
    assert (made.snapshots.every_batches, made.snapshots.every_s) == (7, None)
    assert made.primary_key == ("a", "b")
    assert [(index.columns, index.is_unique) for index in made.indexes] == [(("c",), True)]
