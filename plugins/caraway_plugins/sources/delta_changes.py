"""UPDATE and DELETE of Delta Lake tables, which `deltalake` runs over the newest version."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from caraway_core.errors import ExecutionError, QueryError
from caraway_core.protocols.remote import TableChange
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import schemas
from caraway_plugins.sources.delta_commits import FAILURES, DeltaWrite, quoted, schema_of, text_keys

types = pa.types


class DeltaChange(DeltaWrite):
    """An UPDATE or DELETE; see `RemoteChange`."""

    most_retries = 0  # A version of others may have other rows that meet the condition.

    def __init__(self, table: RemoteTable, change: TableChange) -> None:
        """Take the change.

        Raises:
            InvalidQueryError: a value is one that the table cannot keep.
        """
        super().__init__(table)
        self._change = change
        self.verb = "UPDATE of" if change.assigned else "DELETE from"
        self.done = "changed" if change.assigned else "deleted"
        self._updates = {quoted(each.column): each.sql for each in change.assigned}
        for each in change.assigned:
            self._check_type(each.column)
            if each.value is not None:
                self._updates[quoted(each.column)] = self._spelled(each.column, each.value)

    def write_rows(self) -> int:
        """See `RemoteChange.write_rows`."""
        table = self._opened()
        self._check_same(table)
        self._check_changeable(table)
        condition = self._condition(table)
        if self._updates:
            self._check_keys(text_keys(table))
            metrics = self._committed(
                table,
                lambda properties: table.update(
                    self._updates, predicate=condition, commit_properties=properties
                ),
            )
            return int(metrics["num_updated_rows"])
        counts = pa.table(table.get_add_actions()).column("num_records")
        # The library does not count the rows of files that are deleted whole.
        count = self._counted(table, condition) if counts.null_count else None
        metrics = self._committed(
            table,
            lambda properties: table.delete(condition, commit_properties=properties),
        )
        return int(metrics.get("num_deleted_rows", count))

    def _condition(self, table: DeltaTable) -> str | None:
        """Return the condition. In a table that is divided, it reads another column, too.

        The library deletes files whole where a condition reads none, and takes files of which it
        cannot say whether they meet it. The addition is true, and the library cannot know that.
        """
        keys = table.metadata().partition_columns
        if not self._change.condition or not keys:
            return self._change.condition or None
        for field in schema_of(table):
            if field.name not in keys and _is_plain(field.type):
                name = quoted(field.name)
                true = f"{name} IS NULL OR character_length(CAST({name} AS VARCHAR)) >= 0"
                return f"({self._change.condition}) AND ({true})"
        raise self._refused("no column but those that divide the table has numbers or texts")

    def _counted(self, table: DeltaTable, condition: str | None) -> int:
        """Return how many rows meet the condition."""
        where = f" WHERE {condition}" if condition else ""
        query = f"SELECT count(*) AS n FROM t{where}"
        try:
            rows = pa.table(QueryBuilder().register("t", table).execute(query).read_all())
        except FAILURES as exc:
            raise ExecutionError(
                f"{self._title} failed: its rows cannot be counted; {self._nothing}"
            ) from exc
        return int(rows.column("n")[0].as_py())

    def _check_type(self, name: str) -> None:
        """Check that a column has the type in the table that it has in the dataset."""
        known = {each.name: each.type for each in self._table.columns}
        own = {each.name: schemas.plain(each.type) for each in self._table.schema}
        if own.get(name) != known[name]:
            raise self._refused(
                f"column '{name}' is not a {known[name]} in the table; a type that the dataset "
                "declares is for reading alone"
            )

    def _check_keys(self, keys: frozenset[str]) -> None:
        for each in self._change.assigned:
            if each.column not in keys:
                continue
            if each.sql:
                raise self._refused(
                    f"the table is divided by column '{each.column}', which is set to constants "
                    "alone"
                )
            if each.value is not None and each.value.as_py() == "":
                raise self._refused_empty(each.column)

    def _spelled(self, column: str, value: pa.Scalar) -> str:
        """Return a constant in SQL."""
        if not value.is_valid:
            return f"CASE WHEN 1 = 0 THEN {quoted(column)} END"  # It has the type.
        for test, spell in _SPELLED:
            if test(value.type):
                return spell(value)
        raise self._unkept(column, value.type)

    def _unkept(self, column: str, type_: pa.DataType) -> QueryError:
        return self._refused(f"column '{column}' is a {type_}, which is set to NULL alone")


def _is_plain(type_: pa.DataType) -> bool:
    """Return whether all values have a text."""
    return not types.is_nested(type_) and not types.is_binary(type_)


def _number(value: pa.Scalar) -> str:
    return f"arrow_cast('{value.as_py()}', '{_NAMES[value.type]}')"


def _text(value: pa.Scalar) -> str:
    text: str = value.as_py()
    return "'" + text.replace("'", "''") + "'"


def _decimal(value: pa.Scalar) -> str:
    type_ = value.type
    return f"arrow_cast('{value.as_py():f}', 'Decimal128({type_.precision}, {type_.scale})')"


def _date(value: pa.Scalar) -> str:
    return f"arrow_cast(arrow_cast('{value.value}', 'Int32'), 'Date32')"


def _moment(value: pa.Scalar) -> str:
    zone = f'Some("{value.type.tz}")' if value.type.tz else "None"
    return f"arrow_cast(arrow_cast('{value.value}', 'Int64'), 'Timestamp(Microsecond, {zone})')"


_NAMES = {
    pa.int8(): "Int8", pa.int16(): "Int16", pa.int32(): "Int32", pa.int64(): "Int64",
    pa.float32(): "Float32", pa.float64(): "Float64", pa.bool_(): "Boolean",
}  # fmt: skip
_SPELLED: tuple[tuple[Callable[[Any], bool], Callable[[Any], str]], ...] = (
    (lambda type_: type_ in _NAMES, _number),
    (types.is_string, _text),
    (types.is_binary, lambda value: f"X'{value.as_py().hex()}'"),
    (types.is_decimal128, _decimal),
    (types.is_date32, _date),
    (lambda type_: types.is_timestamp(type_) and type_.unit == "us", _moment),
)
