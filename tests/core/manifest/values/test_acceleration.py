import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caraway_core.errors import ManifestError
from caraway_core.manifest import Acceleration, Manifest, load, loading
from caraway_core.manifest.sections import known_keys
from caraway_core.manifest.shape import acceleration as shapes
from caraway_core.manifest.values.acceleration import (
    Index,
    OnConflict,
    Refresh,
    Retention,
    SnapshotSettings,
)
from caraway_core.partitions.keys import BucketKey, ByColumn, PartitionBy
from tests.core.manifest.accelerating import accelerated, dataset
from tests.core.manifest.conftest import Loads, Refuses, Write

EVERY_KEY = """
      engine: file
      mode: file_update
      refresh_mode: append
      refresh_check_interval: 1m
      refresh_sql: SELECT * FROM t
      refresh_data_window: 1d
      refresh_append_overlap: 5m
      refresh_retry_enabled: true
      refresh_retry_max_attempts: 3
      refresh_jitter_enabled: true
      refresh_jitter_max: 1s
      refresh_on_startup: always
      retention_period: 7d
      retention_check_interval: 1h
      retention_check_enabled: true
      on_zero_results: use_source
      primary_key: (tenant, "Order Id")
      indexes: {region: enabled, "(email, tenant)": unique}
      on_conflict: {'("Order Id", tenant)': upsert, "(tenant, email)": drop}
      sort_by: [at, region]
      partition_by: ["bucket(16, tenant)", {by: tenant}]
      replicas: 2
      snapshots: enabled
      snapshots_trigger: time_interval
      snapshots_trigger_threshold: 10m
      snapshots_compaction: enabled
      snapshots_creation_policy: always
      write_mode: write_back
      params: {cache: 1.10}
"""


@pytest.fixture(autouse=True)
def is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what refuses the keys that do nothing yet; it goes with the last of them."""
    left = [each for each in loading._REFUSALS["datasets"] if each.path != "acceleration"]
    monkeypatch.setitem(loading._REFUSALS, "datasets", tuple(left))


def test_every_key_reaches_its_value(loads: Loads) -> None:
    manifest = loads(dataset(EVERY_KEY))
    assert accelerated(manifest) == Acceleration(
        engine="file",
        mode="file_update",
        refresh=Refresh(
            mode="append",
            period_s=60,
            sql="SELECT * FROM t",
            data_window_s=86400,
            append_overlap_s=300,
            retry_max_attempts=3,
            jitter_max_s=1,
            on_startup="always",
        ),
        retention=Retention(period_s=604800, check_interval_s=3600),
        on_zero_results="use_source",
        primary_key=("tenant", "Order Id"),
        indexes=(Index(("region",)), Index(("email", "tenant"), is_unique=True)),
        on_conflict=(
            OnConflict(("Order Id", "tenant"), "upsert"),
            OnConflict(("tenant", "email"), "drop"),
        ),
        sort_by=("at", "region"),
        partition_by=PartitionBy((BucketKey(16, "tenant"), ByColumn("tenant", "by"))),
        replicas=2,
        snapshots=SnapshotSettings("enabled", "time_interval", 600, None, True, "always"),
        write_mode="write_back",
        params={"cache": "1.10"},
    )
    notice, _without_a_place = manifest.notices
    assert notice.endswith("acceleration.params: have no effect: the engine 'file' has none")


def test_an_empty_section_has_every_default(loads: Loads) -> None:
    found = accelerated(loads(dataset("")))
    assert found == Acceleration()
    assert (found.engine, found.mode, found.refresh.mode) == ("arrow", "memory", "full")
    assert (found.refresh.retry_max_attempts, found.refresh.jitter_max_s) == (None, 0)
    assert found.retention is None


def test_time_format_is_kept(loads: Loads) -> None:
    (found,) = loads(dataset("", "\n    time_column: at\n    time_format: unix_millis")).datasets
    assert (found.time_column, found.time_format) == ("at", "unix_millis")


def test_acceleration_that_is_off_does_nothing(loads: Loads) -> None:
    manifest = loads(dataset("enabled: false, engine: duckdb, refresh_mode: caching, metrics: []"))
    assert manifest.datasets[0].acceleration is None
    assert [notice.rpartition(": ")[2] for notice in manifest.notices] == [
        "has no effect without acceleration"
    ]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("mode: file_create", ("file", "file_create")),
        ("engine: arrow, mode: memory", ("arrow", "memory")),
        ("engine: file", ("file", "file")),
        ("engine: duckdb", ("file", "file")),
        ("engine: sqlite, mode: memory", ("file", "file")),
        ("engine: cayenne, mode: file_update", ("file", "file_update")),
    ],
)
def test_engines_and_modes(loads: Loads, keys: str, expected: tuple[str, str]) -> None:
    found = accelerated(loads(dataset(keys)))
    assert (found.engine, found.mode) == expected


@pytest.mark.parametrize("engine", ["cayenne", "duckdb", "sqlite", "postgres", "turso"])
def test_engines_of_others_are_taken_with_a_notice(
    loads: Loads, engine: str, tmp_path: Path
) -> None:
    manifest = loads(dataset(f"engine: {engine}, params: {{{engine}_file: x}}"))
    where = f"{tmp_path}/caraway.yaml:6: datasets[0].acceleration"
    assert manifest.notices == (
        f"{where}.engine: '{engine}' means the engine 'file' here: the data are kept in its files",
        f"{where}.params: have no effect: those of '{engine}' are not for the engine 'file'",
    )


def test_keys_that_wait_for_another_give_a_notice(loads: Loads) -> None:
    manifest = loads(
        dataset("retention_period: 1d, refresh_jitter_max: 1s, metrics: [{name: rows}]")
    )
    notices = [notice.partition("acceleration.")[2] for notice in manifest.notices]
    assert notices == [
        "metrics: has no effect",
        "retention_period: has no effect unless 'retention_check_enabled' is true",
        "refresh_jitter_max: has no effect unless 'refresh_jitter_enabled' is true",
    ]
    assert accelerated(manifest).retention is None


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ("params: {caching_ttl: 30s}", ["params"]),
        (
            "refresh_retry_enabled: false, refresh_retry_max_attempts: 3",
            ["refresh_retry_max_attempts"],
        ),
        ("snapshots_trigger: refresh_complete", ["snapshots_trigger"]),
        ("refresh_mode: disabled, refresh_check_interval: 1m", ["refresh_check_interval"]),
        (
            "refresh_mode: changes, primary_key: a, refresh_cron: 0 3 * * *, "
            "refresh_sql: SELECT * FROM t, on_zero_results: use_source",
            ["refresh_cron", "refresh_sql", "on_zero_results"],
        ),
        ("refresh_check_interval: 1m, refresh_retry_max_attempts: 3, snapshots: enabled", []),
    ],
)
def test_keys_that_a_dataset_does_not_look_at_give_a_notice(
    loads: Loads, keys: str, named: list[str]
) -> None:
    origin = "postgres:t" if "changes" in keys else "file:a"
    notices = loads(dataset(keys, origin=origin)).notices
    found = [each.partition(".acceleration.")[2].partition(":")[0] for each in notices]
    # A dataset that wants snapshots has another notice: the manifest has no place for them.
    assert list(filter(None, found)) == named


def test_retries_and_jitter_are_settled(loads: Loads) -> None:
    refresh = accelerated(
        loads(
            dataset(
                "refresh_retry_enabled: false, refresh_retry_max_attempts: 4, "
                "refresh_cron: '0 3 * * MON-FRI', refresh_jitter_enabled: true"
            )
        )
    ).refresh
    assert (refresh.retry_max_attempts, refresh.jitter_max_s) == (0, None)
    assert (refresh.cron, refresh.period_s) == ("0 3 * * MON-FRI", None)


@pytest.mark.parametrize(
    ("written", "terms"),
    [
        ("region", (ByColumn("region"),)),
        ("{a: region, b: 'bucket(2, id)'}", (ByColumn("region", "a"), BucketKey(2, "id", "b"))),
        ("[]", ()),
    ],
)
def test_partition_by_is_a_text_a_list_or_a_map(
    loads: Loads, written: str, terms: tuple[object, ...]
) -> None:
    found = accelerated(loads(dataset(f"\n      partition_by: {written}")))
    assert found.partition_by.terms == terms


def test_snapshots_after_batches(loads: Loads) -> None:
    found = accelerated(
        loads(dataset("snapshots_trigger: stream_batches, snapshots_trigger_threshold: 5"))
    )
    assert (found.snapshots.every_batches, found.snapshots.every_s) == (5, None)


def test_everything_that_is_wrong_is_told_at_once(refuses: Refuses) -> None:
    problems = refuses(
        """name: a
datasets:
  - from: file:a
    name: t
    acceleration:
      engine: arrow
      mode: file
      refresh_mode: append
      refresh_check_interval: 1m
      refresh_cron: "* * * * * *"
      refresh_data_window: 1d
      refresh_append_overlap: 1d
      retention_period: 1d
      retention_sql: DELETE FROM t
      retention_check_enabled: true
      primary_key: lower(a)
      indexes: {"(a,": unique}
      on_conflict: {b: upsert}
      partition_by: ["bucket(0, a)"]
      replicas: 0
      snapshots_trigger: stream_batches
      snapshots_trigger_threshold: 5m
      partitoin_by: a
"""
    )
    assert [problem.partition("datasets[0].acceleration.")[2] for problem in problems] == [
        "mode: the engine 'arrow' keeps data in memory; write 'engine: file'",
        "refresh_mode: 'append' needs the dataset's 'time_column'",
        "refresh_cron: '* * * * * *' is not a cron expression: five fields, in UTC, for example "
        "'0 3 * * MON-FRI'",
        "refresh_cron: 'refresh_check_interval' and 'refresh_cron' exclude each other; keep one",
        "refresh_data_window: 'refresh_data_window' needs the dataset's 'time_column'",
        "refresh_append_overlap: 'refresh_append_overlap' needs the dataset's 'time_column'",
        "retention_period: 'retention_period' needs the dataset's 'time_column'",
        "retention_sql: 'retention_period' and 'retention_sql' exclude each other; keep one",
        "primary_key: 'lower(a)' is not a column; write 'a', or '(a, b)' for several",
        "indexes.(a,: '(a,' is not a column; write 'a', or '(a, b)' for several",
        "partition_by: 'bucket(0, a)' has no such number of buckets: 1 to 1,000,000",
        "replicas: must be at least 1",
        "snapshots_trigger_threshold: '5m' is no threshold; write a duration or number above 0",
        "partitoin_by: unknown key 'partitoin_by'; did you mean 'partition_by'?",
    ]
    assert [int(problem.split(":")[1]) for problem in problems] == [
        *(7, 8, 10, 10, 11, 12, 13, 14, 16, 17, 19, 20, 22, 23)
    ]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            "refresh_mode: caching",
            "refresh_mode: 'caching' is refused: rows of a source are kept as a whole;",
        ),
        ("refresh_mode: snapshot", "refresh_mode: 'snapshot' is refused: snapshots are"),
        ("refresh_mode: appendd", "refresh_mode: 'appendd' is not one of: full, append"),
        ("engine: file, mode: memory", "mode: the engine 'file' keeps data in files; write one of"),
        ("on_conflict: {a: upsert}", "on_conflict: 'upsert' needs a 'primary_key'"),
        (
            "on_conflict: {a: upsert_dedup}, indexes: {a: unique}",
            "on_conflict: 'upsert_dedup' needs a 'primary_key'",
        ),
        ("on_conflict: {a: drop}, indexes: {a: enabled}", "on_conflict: 'a' is neither the"),
        ("on_conflict: {a: replace}, primary_key: a", "on_conflict.a: 'replace' is not one of"),
        ("retention_check_enabled: true", "retention_check_enabled: there is nothing to check"),
        ("snapshots_trigger: time_interval", "snapshots_trigger: 'time_interval' needs"),
        ("snapshots_trigger_threshold: 5", "snapshots_trigger_threshold: needs the 'snapshots_tr"),
        ("sort_by: a DESC", "sort_by: 'a DESC' is not a column"),
        ("partition_by: [a, {b: a}]", "partition_by: holds the same expression twice"),
        ("partition_by: {b: 3}", "partition_by: must be a list of expressions"),
        ("refresh_cron: often", "refresh_cron: 'often' is not a cron expression"),
        ("primary_key: [a, b]", "primary_key: must be a text; put it in quotes"),
        ("replicas: 101", "replicas: must be at most 100"),
        ("duckdb_file: x", "duckdb_file: unknown key 'duckdb_file'"),
    ],
)
def test_what_is_wrong_with_one_key(refuses: Refuses, keys: str, message: str) -> None:
    (problem,) = refuses("name: a\n" + dataset(keys))
    assert problem.partition("datasets[0].acceleration.")[2].startswith(message)


@pytest.mark.parametrize(
    "keys",
    [
        "write_mode: write_back",
        "on_conflict: {b: drop}, primary_key: a, indexes: {b: unique}",
    ],
)
def test_keys_of_other_runtimes_are_refused_with_the_reason(
    write: Write, monkeypatch: pytest.MonkeyPatch, keys: str
) -> None:
    monkeypatch.undo()
    with pytest.raises(ManifestError, match=f"'{keys.partition(':')[0]}'.* is refused: .{{20}}"):
        load(write("name: a\n" + dataset(keys)))
    load(write("name: a\n" + dataset(f"enabled: false, {keys}")))


def test_keys_that_work_are_taken(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    keys = "refresh_mode: append, refresh_append_overlap: 1m, primary_key: a, sort_by: a"
    assert accelerated(load(write("name: a\n" + dataset(keys)))).primary_key == ("a",)


def test_snapshots_without_a_place_are_told_of(write: Write) -> None:
    text = "name: a\n" + dataset("snapshots: enabled")
    assert any("'snapshots' has no effect" in each for each in load(write(text)).notices)
    placed = text + "\nsnapshots: {location: file:kept}\n"
    assert not any("'snapshots' has" in each for each in load(write(placed)).notices)


def test_views_are_held_to_the_shape(refuses: Refuses) -> None:
    problems = refuses("name: a\nviews:\n  - {name: v, sql: select 1, acceleration: {engine: x}}\n")
    assert "engine: 'x' is not one of" in problems[0]
    on = "name: a\nviews:\n  - {name: v, sql: select 1, acceleration: {refresh_mode: changes}}\n"
    assert any("a view has no changes" in problem for problem in refuses(on))


WORDS = st.sampled_from(["a", "(a, b)", "(a", "1m", "5", "", "arrow", "file", "append", "changes"])
SCALARS = st.none() | st.booleans() | st.integers(-1, 5) | WORDS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)


@settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.dictionaries(st.sampled_from(known_keys(shapes.AccelerationSection)), VALUES, max_size=8))
def test_any_section_loads_or_is_a_manifest_error(write: Write, section: object) -> None:
    path = write("name: a\n" + dataset(f"\n      {json.dumps(section)}"))
    try:
        assert isinstance(load(path), Manifest)
    except ManifestError as exc:
        assert exc.problems
