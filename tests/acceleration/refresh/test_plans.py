"""The plan of a dataset: what the manifest says of keys, conflicts, schedules and partitions."""

from pathlib import Path

import pytest

from caraway_acceleration.refresh import plans
from caraway_core.loading.declarations import RefreshMode
from caraway_core.manifest import Dataset, load
from caraway_core.manifest.values.acceleration import (
    Acceleration,
    ConflictAction,
    Index,
    OnConflict,
    Refresh,
)
from caraway_core.tables import LookupColumns
from caraway_scheduler.coordination.schedule import Cron, Interval


def dataset(folder: Path, accelerated: str, origin: str = "file:a.parquet") -> Dataset:
    text = f"name: app\ndatasets: [{{from: '{origin}', name: t, acceleration: {accelerated}}}]\n"
    path = folder / "caraway.yaml"
    path.write_text(text)
    (found,) = load(path).datasets
    return found


@pytest.mark.parametrize(
    ("actions", "mode", "twice"),
    [
        ([], "full", "refuse"),
        ([], "append", "refuse"),
        (["drop"], "full", "first"),
        (["drop"], "append", "first"),
        (["upsert"], "full", "refuse"),
        (["upsert"], "append", "last"),
        (["upsert_dedup"], "full", "same"),
        (["upsert_dedup"], "append", "last"),
        (["upsert_dedup_by_row_id"], "full", "last"),
        (["drop", "upsert"], "append", "first"),
    ],
)
def test_which_of_two_rows_with_one_key_is_kept(
    actions: list[ConflictAction], mode: RefreshMode, twice: str
) -> None:
    conflicts = tuple(OnConflict(("id",), each) for each in actions)
    refresh = Refresh(mode=mode)
    assert plans.twice_of(Acceleration(refresh=refresh, on_conflict=conflicts)) == twice


@pytest.mark.parametrize(
    ("key", "indexes", "expected"),
    [
        ((), [], None),
        ((), [Index(("a",))], None),
        (("id",), [], ("id", False)),
        (("id", "a"), [Index(("a", "b"), is_unique=True)], ("a", False)),
        ((), [Index(("a", "b"), is_unique=True), Index(("b",), is_unique=True)], ("b", False)),
        (("id",), [Index(("a",), is_unique=True)], ("id", True)),
        (("id",), [Index(("a",), is_unique=False)], ("id", False)),
    ],
)
def test_rows_with_equal_keys_are_in_one_partition(
    key: tuple[str, ...], indexes: list[Index], expected: tuple[str, bool] | None
) -> None:
    """Where two keys have no common column, all rows are in one."""
    found = plans.bucketed(Acceleration(primary_key=key, indexes=tuple(indexes)), key)
    assert (found and (found.column, found.is_one)) == expected


def test_manifest_with_partitions_has_no_default_ones(tmp_path: Path) -> None:
    found = dataset(tmp_path, "{enabled: true, primary_key: id, partition_by: ['bucket(4, id)']}")
    assert found.acceleration is not None
    assert plans.bucketed(found.acceleration, ("id",)) is None


@pytest.mark.parametrize(
    ("accelerated", "schedule"),
    [
        ("{enabled: true}", None),
        ("{enabled: true, refresh_check_interval: 90s}", Interval(90.0)),
        ("{enabled: true, refresh_cron: '0 3 * * *'}", Cron("0 3 * * *")),
    ],
)
def test_schedule_is_that_of_the_manifest(
    tmp_path: Path, accelerated: str, schedule: object
) -> None:
    found = dataset(tmp_path, accelerated)
    assert found.acceleration is not None
    plan = plans.plan_of(found, found.acceleration, "on_load")
    assert plan.timetable.schedule == schedule
    assert (plan.name, plan.settings.ready_state, plan.is_following) == ("t", "on_load", False)


def test_keys_of_a_version_are_the_primary_key_and_the_indexes(tmp_path: Path) -> None:
    found = dataset(
        tmp_path, "{enabled: true, primary_key: id, indexes: {a: enabled, '(b, c)': unique}}"
    )
    assert found.acceleration is not None
    subject = plans.subject_of(found, found.acceleration)
    assert subject.keys is not None and subject.keys.primary == ("id",)
    assert subject.keys.indexes == (
        LookupColumns(("a",), False), LookupColumns(("b", "c"), True)
    )  # fmt: skip
    plain = dataset(tmp_path, "{enabled: true}")
    assert plain.acceleration is not None
    assert plans.subject_of(plain, plain.acceleration).keys is None


def test_only_sources_of_changes_are_followed(tmp_path: Path) -> None:
    found = dataset(tmp_path, "{enabled: true}")
    assert found.acceleration is not None
    assert not plans.is_followed(found, found.acceleration)
    changes = Acceleration(refresh=Refresh(mode="changes"))
    assert not plans.is_followed(found, changes)
