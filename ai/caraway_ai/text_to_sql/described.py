"""A description of tables: columns, keys, how they belong together, and some of their values."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from caraway_ai.text_to_sql import relating
from caraway_ai.text_to_sql.relating import TableRelation
from caraway_ai.tools.data_access import DataAccess, KnownColumn, KnownTable, RowLimits
from caraway_ai.tools.protocol import ToolCaller
from caraway_ai.tools.sql_names import quoted, quoted_table
from caraway_core.errors import CarawayError

_SAMPLED_ROWS = 10_000
_MATCHED_VALUES = 64
"""Of each column, to find those that a question names."""
_LONGEST_VALUE = 40
_MOST_COLUMNS = 60
_AT_ONCE = 4
_MOST_BYTES = 256 * 1024
_TEXTS = ("Utf8", "LargeUtf8", "Utf8View", "Dictionary(")
_MOMENTS = ("Date", "Timestamp")


@dataclass(frozen=True, slots=True)
class SampledValues:
    """Some values of a column; with `is_all`, the first rows of the table have no others.

    `others` are less frequent values, which are compared with a question and not shown.
    """

    values: tuple[Any, ...]
    is_all: bool = False
    others: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class TableSampling:
    """The amount of data in a description; 0 is none."""

    values: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class DescribedTable:
    """A table with what a model or a person needs to write SQL over it."""

    table: KnownTable
    columns: Sequence[KnownColumn]
    relations: Sequence[TableRelation] = ()
    values: Mapping[str, SampledValues] = field(default_factory=dict)
    rows: Sequence[Mapping[str, Any]] = ()


async def describe(
    data: DataAccess, caller: ToolCaller, tables: Iterable[KnownTable], sampling: TableSampling
) -> list[DescribedTable]:
    """Describe tables, some at a time. One that cannot be read now is left out.

    What a sample cannot be taken of is described without it.
    """
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(table: KnownTable) -> DescribedTable | None:
        async with room:
            try:
                columns = await data.columns(table.name, caller)
            except CarawayError:
                return None
            described = DescribedTable(table, columns)
            try:
                return await _sampled(data, caller, described, sampling)
            except CarawayError:
                return described

    found = await asyncio.gather(*map(one, tables))
    described_tables = [each for each in found if each is not None]
    related = relating.found([(each.table, each.columns) for each in described_tables])
    return [replace(each, relations=related.get(each.table.name, ())) for each in described_tables]


async def _sampled(
    data: DataAccess, caller: ToolCaller, described: DescribedTable, sampling: TableSampling
) -> DescribedTable:
    if sampling.values:
        most = max(sampling.values + 1, _MATCHED_VALUES)
        limits = RowLimits(_MOST_COLUMNS * most, _MOST_BYTES)
        if sql := _values_sql(described, most):
            read = await data.query(sql, caller, limits)
            described = replace(
                described, values=_values(described.columns, read.rows, sampling.values)
            )
    if sampling.rows:
        table = quoted_table(described.table.name)
        sql = f"SELECT * FROM {table} LIMIT {sampling.rows}"
        read = await data.query(sql, caller, RowLimits(sampling.rows, _MOST_BYTES))
        described = replace(described, rows=[_short_row(row) for row in read.rows])
    return described


def _values_sql(described: DescribedTable, most: int) -> str:
    """Return one statement that reads values of every column whose values help a model."""
    parts = []
    for number, column in enumerate(described.columns[:_MOST_COLUMNS]):
        name = quoted(column.name)
        if column.data_type.startswith(_TEXTS):
            parts.append(
                f"SELECT * FROM (SELECT {number} AS n, CAST({name} AS VARCHAR) AS v, count(*) AS c "
                f"FROM s WHERE {name} IS NOT NULL GROUP BY 2 ORDER BY c DESC, v LIMIT {most})"
            )
        elif column.data_type.startswith(_MOMENTS):
            parts += [
                f"SELECT {number} AS n, CAST({function}({name}) AS VARCHAR) AS v, 0 AS c FROM s"
                for function in ("min", "max")
            ]
    if not parts:
        return ""
    table = quoted_table(described.table.name)
    names = ", ".join(quoted(each.name) for each in described.columns[:_MOST_COLUMNS])
    sample = f"WITH s AS (SELECT {names} FROM {table} LIMIT {_SAMPLED_ROWS})"
    # Not ordered here: DataFusion refuses to plan an order over a union of ordered parts.
    return f"{sample} SELECT n, v, c FROM ({' UNION ALL '.join(parts)})"


def _values(
    columns: Sequence[KnownColumn], rows: Sequence[Mapping[str, Any]], most: int
) -> dict[str, SampledValues]:
    """Return the values by column, the most frequent first; of moments the first and the last."""
    found: dict[str, list[Any]] = {}
    for row in sorted(rows, key=lambda row: (row["n"], -row["c"], str(row["v"]))):
        found.setdefault(columns[row["n"]].name, []).append(row["v"])
    sampled = {}
    for name, values in found.items():
        kept = [_short(value) for value in values if value is not None]
        if kept and not all(_is_cut(value) for value in values):
            shown, others = tuple(kept[:most]), tuple(kept[most:])
            sampled[name] = SampledValues(shown, len(values) <= most, others)
    return sampled


def _short_row(row: Mapping[str, object]) -> dict[str, object]:
    return {name: _short(value) for name, value in row.items()}


def _short(value: Any) -> object:
    return f"{value[:_LONGEST_VALUE]}..." if _is_cut(value) else value


def _is_cut(value: object) -> bool:
    return isinstance(value, str) and len(value) > _LONGEST_VALUE
