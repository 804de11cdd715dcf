"""Reads tables over files. A table is made in a scratch context and then taken out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from datafusion import DataFrame, Expr, SessionConfig, SessionContext, col, lit
from datafusion import functions as f
from datafusion.catalog import Table

from caraway_core.tables import CsvDialect, FileScan, FilesTable, MemoryTable, TableSpec, TableSplit
from caraway_engine.scans import object_stores, scans
from caraway_engine.scans.readers import memory

_NAME = "scan_{}"
_COMPUTED = pa.field("", pa.null())
_COMMA_ONLY = " (the decimal separator is a comma)"


@dataclass(frozen=True, slots=True)
class _Read:
    """A scan and the rows that it gives."""

    scan: FileScan
    rows: DataFrame


def read(spec: FilesTable, _splits: Sequence[TableSplit] = ()) -> Table:
    """Make a table of files; contexts that run queries over it need its object stores, too."""
    if not spec.scans:
        return memory.read(MemoryTable(spec.schema, spec.schema.empty_table()))
    context = _scratch()
    object_stores.register(context, spec)
    read = [_Read(scan, _added(context, number, scan)) for number, scan in enumerate(spec.scans)]
    if len(read) == 1 and _is_whole(read[0], spec.schema) and context.table_exist(_NAME.format(0)):
        return context.catalog().schema().table(_NAME.format(0))
    return _union(read, spec.schema).into_view()


def is_measured_wrongly(spec: TableSpec) -> bool:
    """True if DataFusion may use statistics of the table that do not hold.

    Statistics of Parquet files leave NaN out, and a column whose least and greatest values are
    equal is taken for a constant: its NaNs would read as that value.
    """
    if all(scan.format != "parquet" for scan in spec.scans):
        return False
    return any(map(_holds_floats, spec.schema.types))


def _holds_floats(type_: pa.DataType) -> bool:
    inner = [type_.field(index).type for index in range(type_.num_fields)]
    return bool(pa.types.is_floating(type_)) or any(map(_holds_floats, inner))


def _scratch() -> SessionContext:
    config = SessionConfig().set("datafusion.execution.listing_table_ignore_subdirectory", "false")
    context = SessionContext(config)
    context.sql("SET datafusion.runtime.list_files_cache_limit = '0K'").collect()
    return context


def _is_whole(read: _Read, schema: pa.Schema) -> bool:
    """True if the scan returns the table unchanged: no column is cast, added or reordered."""
    if _as_read(read.scan) is not read.scan:
        return False
    fields = [(each.name, each.type) for each in read.rows.schema()]
    return fields == [(each.name, each.type) for each in schema]


def _union(read: Sequence[_Read], schema: pa.Schema) -> DataFrame:
    chosen = []
    for each in read:
        columns = _columns(each.scan, each.rows.schema())
        chosen.append(each.rows.select(*(_expression(field, columns) for field in schema)))
    return reduce(DataFrame.union, chosen)


def _added(context: SessionContext, number: int, scan: FileScan) -> DataFrame:
    return scans.add(context, _NAME.format(number), _as_read(scan))


def _as_read(scan: FileScan) -> FileScan:
    """Read columns as text where the reader ignores what NULL is, or the decimal separator."""
    as_text = [field for field in scan.schema if _is_text(field, scan.csv)]
    if not as_text:
        return scan
    text = [field.with_type(pa.string()) if field in as_text else field for field in scan.schema]
    return replace(scan, schema=pa.schema(text))


def _is_text(field: pa.Field, csv: CsvDialect | None) -> bool:
    return csv is not None and (csv.null_regex is not None or _has_comma(field.type, csv))


def _has_comma(type_: pa.DataType, csv: CsvDialect) -> bool:
    is_fraction = pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    return csv.decimal_separator != "." and is_fraction


def _columns(scan: FileScan, read: pa.Schema) -> dict[str, tuple[Expr, pa.Field]]:
    """Return what the scan can give for each column name of the table, and as which field."""
    names = dict(zip(scan.schema.names, scan.table_names, strict=True))
    found = {names.get(each.name, each.name): (_column(each.name), each) for each in read}
    for field, name in zip(scan.schema, scan.table_names, strict=True):
        if scan.csv is not None and _is_text(field, scan.csv):
            found[name] = (_read_text(found[name][0], field.type, scan.csv), _COMPUTED)
    if scan.partition_values is not None:
        for field, value in zip(scan.partition_columns, scan.partition_values, strict=True):
            found[field.name] = (lit(value), _COMPUTED)
    return found


def _expression(field: pa.Field, columns: dict[str, tuple[Expr, pa.Field]]) -> Expr:
    if field.name not in columns:
        return lit(None).cast(field.type).alias(field.name)
    expression, read = columns[field.name]
    if read.type != field.type:
        expression = expression.cast(field.type)
    elif read.name == field.name:
        # DataFusion 55 cannot push `u['n']` through a column that is renamed to its own name.
        return expression
    return expression.alias(field.name)


def _column(name: str) -> Expr:
    return col('"' + name.replace('"', '""') + '"')


def _read_text(column: Expr, type_: pa.DataType, csv: CsvDialect) -> Expr:
    if csv.null_regex:
        column = _null_where(column, csv.null_regex)
    return _with_point(column) if _has_comma(type_, csv) else column


def _with_point(column: Expr) -> Expr:
    """Return a number with a point for its comma. One with a point is no number: the cast fails."""
    refused = f.concat(column, lit(_COMMA_ONLY))
    number = f.replace(column, lit(","), lit("."))
    return f.when(f.strpos(column, lit(".")) > lit(0), refused).otherwise(number)


def _null_where(column: Expr, regex: str) -> Expr:
    return f.when(f.regexp_like(column, lit(regex)), lit(None)).otherwise(column)
