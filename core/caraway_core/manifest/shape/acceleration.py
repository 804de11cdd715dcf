"""The `acceleration` section of datasets and views."""

import re
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from caraway_core.manifest.sections import (
    After,
    Anything,
    Before,
    Count,
    CountOrNone,
    Duration,
    Items,
    Limits,
    PositiveDuration,
    Section,
    Text,
    Texts,
    Written,
)
from caraway_core.partitions import keys

_CRON_FIELD = re.compile(r"[\w*/,?#-]{1,100}")


def _check_columns(text: str) -> str:
    keys.columns(text)
    return text


def _columns_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def check_cron(text: str) -> str:
    """Return a cron expression whose number of fields is right; the scheduler checks the rest.

    Raises:
        ValueError: it has another number.
    """
    fields = text.split()
    if len(fields) != 5 or not all(map(_CRON_FIELD.fullmatch, fields)):
        raise ValueError(
            f"'{text}' is not a cron expression: five fields, in UTC, for example '0 3 * * MON-FRI'"
        )
    return text


def _terms(value: object) -> object:
    """Parse an expression, `{name: expression}`, or a list of them."""
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str | dict) for item in items):
        raise ValueError("must be a list of expressions or of 'name: expression'")
    terms = [term for item in items for term in _terms_of(item)]
    cuts = {replace(term, name=None) for term in terms}
    if len(cuts) < len(terms):
        raise ValueError("holds the same expression twice")
    return terms


def _terms_of(item: object) -> list[keys.Term]:
    if not isinstance(item, dict):
        return [keys.parse(str(item))]
    if not all(isinstance(text, str) for text in item.values()):
        raise ValueError("must be a list of expressions or of 'name: expression'")
    return [keys.parse(text, str(name)) for name, text in item.items()]


Columns = Annotated[Text, After(_check_columns)]
"""A column, or several as `(a, b)`."""

SortBy = Annotated[tuple[Columns, ...], Before(_columns_list, Items[Columns])]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccelerationSection(Section):
    enabled: bool = True
    engine: Literal["arrow", "file", "cayenne", "duckdb", "sqlite", "postgres", "turso"] | None = (
        None
    )
    mode: Literal["memory", "file", "file_create", "file_update"] | None = None
    refresh_mode: (
        Literal[
            "full", "append", "changes", "caching", "disabled", "changes_after_load", "snapshot"
        ]
        | None
    ) = None
    refresh_check_interval: PositiveDuration | None = None
    refresh_cron: Annotated[Text, After(check_cron)] | None = None
    refresh_sql: Text | None = None
    refresh_data_window: PositiveDuration | None = None
    refresh_append_overlap: Duration | None = None
    refresh_retry_enabled: bool = True
    refresh_retry_max_attempts: CountOrNone | None = None
    refresh_jitter_enabled: bool = False
    refresh_jitter_max: Duration | None = None
    refresh_on_startup: Literal["auto", "always"] = "auto"
    retention_period: PositiveDuration | None = None
    retention_sql: Text | None = None
    retention_check_interval: PositiveDuration | None = None
    retention_check_enabled: bool = False
    on_zero_results: Literal["return_empty", "use_source"] = "return_empty"
    primary_key: Columns | None = None
    indexes: dict[Columns, Literal["enabled", "unique"]] = field(default_factory=dict)
    on_conflict: dict[
        Columns, Literal["drop", "upsert", "upsert_dedup", "upsert_dedup_by_row_id"]
    ] = field(default_factory=dict)
    sort_by: SortBy = ()
    partition_by: Annotated[tuple[keys.Term, ...], Before(_terms, Items[keys.Term])] = ()
    replicas: Annotated[Count, Limits(le=100)] = 1
    snapshots: Literal["disabled", "enabled", "bootstrap_only", "create_only"] = "disabled"
    snapshots_trigger: Literal["refresh_complete", "time_interval", "stream_batches"] | None = None
    snapshots_trigger_threshold: Written | None = None
    snapshots_compaction: Literal["disabled", "enabled"] = "disabled"
    snapshots_creation_policy: Literal["always", "on_change"] = "on_change"
    snapshots_keep: Annotated[Count, Limits(ge=2, le=1000)] = 2
    write_mode: Literal["write_through", "write_back"] = "write_through"
    params: Texts = field(default_factory=dict)
    metrics: Anything | Items[Anything] | None = None
