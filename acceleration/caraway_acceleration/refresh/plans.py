"""Derives the refresh plan of a dataset from the manifest, as values."""

from collections.abc import Mapping

from caraway_acceleration.recipes import statements
from caraway_acceleration.recipes.recipes import Recipe
from caraway_acceleration.refresh import refresh_events as events
from caraway_acceleration.refresh.backoff import Retries
from caraway_acceleration.refresh.reloading import Bucketed, LoadPlan
from caraway_acceleration.versions import fingerprints
from caraway_acceleration.versions.current_version import Subject
from caraway_core.ids import TableName
from caraway_core.loading import registry
from caraway_core.manifest import Dataset
from caraway_core.manifest.values.acceleration import Acceleration, ConflictAction
from caraway_core.partitions.keys import ByExpression
from caraway_core.tables import Keys, LookupColumns, Twice
from caraway_scheduler.catalog.states import ReadyState
from caraway_scheduler.coordination.schedule import Cron, Interval, Schedule, Timetable

_TWICE: Mapping[ConflictAction, Twice] = {
    "drop": "first",
    "upsert": "refuse",
    "upsert_dedup": "same",
    "upsert_dedup_by_row_id": "last",
}


def plan_of(dataset: Dataset, acceleration: Acceleration, ready_state: ReadyState) -> LoadPlan:
    """Return the load plan of a dataset.

    Raises:
        ValueError: a setting is invalid, although the manifest was validated.
    """
    name, refresh = TableName(dataset.name), acceleration.refresh
    sql = statements.refresh_sql(refresh.sql, name) if refresh.sql else None
    schedule: Schedule | None = None
    if refresh.period_s is not None:
        schedule = Interval(refresh.period_s)
    elif refresh.cron is not None:
        schedule = Cron(refresh.cron)
    attempts = refresh.retry_max_attempts
    settings = events.RefreshSettings(
        refresh_mode=refresh.mode,
        refresh_sql=sql,
        ready_state=ready_state,
        retries=Retries(attempts != 0, attempts),
        has_time_column=dataset.time_column is not None,
    )
    return LoadPlan(
        name,
        Timetable(schedule, refresh.on_startup, refresh.jitter_max_s),
        settings,
        _recipe(dataset, acceleration),
        acceleration.partition_by,
        bucketed(acceleration, acceleration.primary_key),
        # Rows that arrived as changes cannot be loaded again from a source.
        reopens=acceleration.mode != "memory" or refresh.mode == "changes",
        search=dataset.search,
        is_following=schedule is None and registry.connector(dataset.connector).is_copying,
    )


def subject_of(dataset: Dataset, acceleration: Acceleration) -> Subject:
    """Return the subject of a dataset's versions: its origin, keys and storage."""
    name = TableName(dataset.name)
    keys = _keys(acceleration)
    return Subject(
        name,
        fingerprints.fingerprint(dataset, acceleration),
        keys,
        is_mapped=acceleration.engine == "file",
        replicas=acceleration.replicas,
        is_followed=is_followed(dataset, acceleration),
        earlier_origin=fingerprints.earlier_fingerprint(dataset, acceleration),
    )


def is_followed(dataset: Dataset, acceleration: Acceleration) -> bool:
    """Return whether the rows of a dataset come from a source of changes that is followed."""
    return acceleration.refresh.mode == "changes" and dataset.connector in registry.CHANGE_SOURCES


def _keys(acceleration: Acceleration) -> Keys | None:
    if not acceleration.primary_key and not acceleration.indexes:
        return None
    indexes = tuple(LookupColumns(each.columns, each.is_unique) for each in acceleration.indexes)
    return Keys(acceleration.primary_key, twice_of(acceleration), indexes)


def twice_of(acceleration: Acceleration) -> Twice:
    """Return which of several rows with one primary key is kept.

    With upserts, a row that is appended later replaces the earlier one.
    """
    actions = [each.action for each in acceleration.on_conflict]
    if not actions:
        return "refuse"
    if acceleration.refresh.mode == "append" and actions[0] != "drop":
        return "last"
    return _TWICE[actions[0]]


def bucketed(acceleration: Acceleration, primary_key: tuple[str, ...]) -> Bucketed | None:
    """Return the default buckets for a dataset whose manifest has no `partition_by`.

    Rows with equal key values must be in one partition, because uniqueness is checked there.
    """
    unique = [each.columns for each in acceleration.indexes if each.is_unique]
    groups = [*([primary_key] if primary_key else []), *unique]
    if acceleration.partition_by.terms or not groups:
        return None
    common = [name for name in groups[0] if all(name in group for group in groups)]
    return Bucketed(common[0]) if common else Bucketed(groups[0][0], is_one=True)


def _recipe(dataset: Dataset, acceleration: Acceleration) -> Recipe:
    name, kept = TableName(dataset.name), acceleration.retention
    condition = None
    if kept is not None and kept.sql:
        condition = statements.retention_sql(kept.sql, name).condition
    return Recipe(
        name,
        dataset.time_column,
        dataset.time_format,
        acceleration.refresh.data_window_s,
        acceleration.refresh.append_overlap_s or 0.0,
        acceleration.primary_key,
        kept.period_s if kept else None,
        condition,
        acceleration.sort_by,
        tuple(
            term.sql for term in acceleration.partition_by.terms if isinstance(term, ByExpression)
        ),
        twice_of(acceleration) == "last",
    )
