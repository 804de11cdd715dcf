"""Generates the SQL that loads a version, from the source and from the previous version."""

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from caraway_acceleration.recipes import generated, retention
from caraway_acceleration.recipes.generated import GeneratedVectors
from caraway_acceleration.recipes.retention import TimeColumn
from caraway_acceleration.recipes.statements import RefreshSql
from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.manifest.values.acceleration import TimeFormat
from caraway_scheduler.catalog.states import source_of


@dataclass(frozen=True, slots=True)
class Recipe:
    """The load settings of a dataset, and the SQL statements that they define."""

    name: TableName
    time_column: str | None = None
    time_format: TimeFormat | None = None
    window_s: float | None = None
    overlap_s: float = 0.0
    primary_key: tuple[str, ...] = ()
    retention_s: float | None = None
    retention_condition: str | None = None
    sort_by: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()
    """Partition expressions; their values follow the columns of the dataset."""
    replaces: bool = False
    """True if an appended row replaces the one with the same primary key."""
    vectors: tuple[GeneratedVectors, ...] = ()
    """The generated columns."""
    reuses_vectors: bool = False
    """True if the loaded rows have vectors of the same models, which need not be made again."""

    @property
    def only_adds(self) -> bool:
        """True if an append never changes rows that are already loaded."""
        is_kept = self.retention_s is None and self.retention_condition is None
        return is_kept and not self.overlap_s and not self.sort_by

    def full(self, sql: RefreshSql | None, source: pa.Schema, now: datetime) -> str:
        """Return the statement of a full refresh.

        Raises:
            DatasetError: the time column is missing or has an unsuitable type.
        """
        condition = None
        if self.window_s is not None:
            condition = retention.window(self._time(source), self.window_s, now)
        kept = self._kept(self._selected(sql, condition), source, now)
        return self._parted(self._with_vectors(kept))

    def check_time(self, source: pa.Schema) -> None:
        """Check that the time column exists and has a suitable type.

        Raises:
            DatasetError: it is missing or unsuitable.
        """
        self._time(source)

    def newest(self, loaded: pa.Schema) -> str:
        """Return the query for the newest loaded time, which `append` takes."""
        newest = retention.newest(self._time(loaded))
        return f"SELECT {newest} AS newest FROM {quoted(self.name)}"

    def append(
        self,
        sql: RefreshSql | None,
        source: pa.Schema,
        loaded: pa.Schema,
        newest_tick: int | None,
        now: datetime,
    ) -> str:
        """Return the statement for the loaded rows and newer ones from the source.

        Rows in the overlap are read again. They replace the rows with their primary key or, without
        one, all rows in the overlap.
        """
        fresh = self._fresh(sql, source, newest_tick, now)
        columns = ", ".join(map(_name, loaded.names))
        kept = f"SELECT {columns} FROM {self._loaded(loaded)} AS old"
        is_replaced = self.replaces and bool(self.primary_key)
        if is_replaced or (self.overlap_s > 0 and newest_tick is not None):
            kept += f" WHERE {self._left_in_place(self._time(loaded), newest_tick)}"
        # The new rows are defined outside the query over the old ones, because inside it the
        # dataset's name refers to its source.
        both = (
            f"WITH caraway_fresh AS ({fresh}) {kept} UNION ALL SELECT {columns} FROM caraway_fresh"
        )
        return self._finished(both, loaded, now)

    def added(
        self,
        sql: RefreshSql | None,
        source: pa.Schema,
        loaded: pa.Schema,
        newest_tick: int | None,
        now: datetime,
    ) -> str:
        """Return the statement for the newer rows of a dataset that only grows."""
        columns = ", ".join(map(_name, loaded.names))
        fresh = self._fresh(sql, source, newest_tick, now)
        return self._parted(f"SELECT {columns} FROM ({fresh})")

    def rewritten(self, loaded: pa.Schema, now: datetime) -> str:
        """Return the statement for the loaded rows without expired ones."""
        return self._finished(f"SELECT * FROM {quoted(self.name)}", loaded, now)

    def reindexed(self, loaded: pa.Schema, now: datetime) -> str:
        """Return the statement for the loaded rows with vectors of the present models."""
        rows = generated.made_again(quoted(self.name), loaded, self.vectors)
        return self._finished(rows, loaded, now)

    def expired(self, loaded: pa.Schema, now: datetime) -> str | None:
        """Return the query that counts expired rows, or None if rows cannot expire."""
        conditions = self._conditions(loaded, now)
        if not conditions:
            return None
        kept = " AND ".join(conditions)
        return f"SELECT count(*) - count(*) FILTER (WHERE {kept}) FROM {quoted(self.name)}"

    def _fresh(
        self, sql: RefreshSql | None, source: pa.Schema, newest_tick: int | None, now: datetime
    ) -> str:
        time = self._time(source)
        condition = retention.to_append(time, now, newest_tick, self.overlap_s, self.window_s)
        return self._with_vectors(self._selected(sql, condition))

    def _with_vectors(self, sql: str) -> str:
        old = quoted(self.name) if self.reuses_vectors else None
        return generated.with_vectors(sql, self.vectors, old)

    def _loaded(self, loaded: pa.Schema) -> str:
        """Return the loaded rows as a table, with vectors of the present models."""
        if not self.vectors or self.reuses_vectors:
            return quoted(self.name)
        return f"({generated.made_again(quoted(self.name), loaded, self.vectors)})"

    def _left_in_place(self, time: TimeColumn, newest_tick: int | None) -> str:
        if not self.primary_key and newest_tick is not None:
            return retention.kept(retention.since(time, newest_tick, self.overlap_s))
        same = " AND ".join(f"fresh.{_name(key)} = old.{_name(key)}" for key in self.primary_key)
        return f"NOT EXISTS (SELECT 1 FROM caraway_fresh AS fresh WHERE {same})"

    def _selected(self, sql: RefreshSql | None, condition: str | None) -> str:
        source = f"SELECT * FROM {quoted(source_of(self.name))}"
        if condition:
            source += f" WHERE {condition}"
        if sql is None:
            return source
        if "." in self.name:
            raise DatasetError(
                "unsupported", f"dataset '{self.name}': refresh_sql needs a name without a schema"
            )
        return f"WITH {quoted(self.name)} AS ({source}) {sql.text}"

    def _finished(self, sql: str, schema: pa.Schema, now: datetime) -> str:
        return self._parted(self._kept(sql, schema, now))

    def _kept(self, sql: str, schema: pa.Schema, now: datetime) -> str:
        if conditions := self._conditions(schema, now):
            sql = f"SELECT * FROM ({sql}) WHERE {' AND '.join(conditions)}"
        return sql

    def _conditions(self, schema: pa.Schema, now: datetime) -> list[str]:
        conditions = []
        if self.retention_s is not None:
            expired = retention.expired(self._time(schema), self.retention_s, now)
            conditions.append(retention.kept(expired))
        if self.retention_condition is not None:
            conditions.append(retention.kept(self.retention_condition))
        return conditions

    def _parted(self, sql: str) -> str:
        if self.expressions:
            values = ", ".join(
                f"({expression}) AS {_name(f'caraway_part_{number}')}"
                for number, expression in enumerate(self.expressions)
            )
            sql = f"SELECT *, {values} FROM ({sql})"
        if self.sort_by:
            sql = f"SELECT * FROM ({sql}) ORDER BY {', '.join(map(_name, self.sort_by))}"
        return sql

    def _time(self, schema: pa.Schema) -> TimeColumn:
        try:
            return retention.time_column(schema, self.time_column or "", self.time_format)
        except ValueError as exc:
            raise DatasetError("schema", f"dataset '{self.name}': {exc}") from exc


def quoted(name: TableName) -> str:
    """Return a table name with its parts quoted for SQL."""
    return ".".join(map(_name, name.split(".")))


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'
