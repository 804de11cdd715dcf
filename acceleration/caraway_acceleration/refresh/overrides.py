"""The settings of one requested refresh that override the manifest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from caraway_acceleration.recipes import statements
from caraway_acceleration.recipes.statements import RefreshSql
from caraway_core.ids import TableName
from caraway_core.manifest.texts import units

LoadMode = Literal["full", "append"]


@dataclass(frozen=True, slots=True)
class RefreshOverrides:
    """Overrides of a refresh; None keeps the dataset's setting."""

    refresh_sql: RefreshSql | None = None
    refresh_mode: LoadMode | None = None
    refresh_jitter_max_s: float | None = None


def read(body: Mapping[str, object], dataset: TableName) -> RefreshOverrides:
    """Parse the body of a refresh request; null counts as absent, and unknown fields are ignored.

    Raises:
        ValueError: a field has an invalid value.
    """
    sql, jitter = body.get("refresh_sql"), body.get("refresh_jitter_max")
    return RefreshOverrides(
        None if sql is None else _refresh_sql(sql, dataset),
        _mode(body.get("refresh_mode")),
        None if jitter is None else _jitter_max_s(jitter),
    )


def _refresh_sql(value: object, dataset: TableName) -> RefreshSql:
    if not isinstance(value, str):
        raise ValueError("refresh_sql must be a string")
    return statements.refresh_sql(value, dataset)


def _mode(value: object) -> LoadMode | None:
    match value.lower() if isinstance(value, str) else value:
        case None:
            return None
        case "full":
            return "full"
        case "append":
            return "append"
        case "changes" | "disabled":
            raise ValueError(f"refresh_mode '{value}' loads nothing; use full or append")
    raise ValueError(f"refresh_mode '{value}' is unknown; use full or append")


def _jitter_max_s(value: object) -> float:
    try:
        return units.seconds(value)
    except ValueError as exc:
        raise ValueError(f"refresh_jitter_max: {exc}") from exc
