"""Table specs as DataFusion tables. A table is made in a scratch context and then taken out."""

import pyarrow as pa
from datafusion import DataFrame, Expr, SessionConfig, SessionContext, col, lit
from datafusion import functions as f
from datafusion.catalog import Table

from caraway_core.tables import FileScan, FilesTable, MemoryTable
from caraway_engine import object_stores, scans


def build_table(spec: FilesTable | MemoryTable) -> Table:
    """Make a table of a spec; contexts that run queries over it need its object stores, too."""
    context = _scratch()
    if isinstance(spec, MemoryTable):
        return _memory(context, spec)
    object_stores.register(context, spec)
    if len(spec.scans) == 1 and _is_whole(spec.scans[0], spec.schema):
        scans.add(context, "scan", spec.scans[0])
        return context.catalog().schema().table("scan")
    return _union(context, spec).into_view()


def _scratch() -> SessionContext:
    config = (
        SessionConfig()
        .set("datafusion.execution.listing_table_ignore_subdirectory", "false")
        .set("datafusion.sql_parser.map_string_types_to_utf8view", "false")
    )
    context = SessionContext(config)
    context.sql("SET datafusion.runtime.list_files_cache_limit = '0K'").collect()
    return context


def _memory(context: SessionContext, spec: MemoryTable) -> Table:
    batches = spec.rows.cast(spec.schema).to_batches()
    empty = pa.RecordBatch.from_pylist([], schema=spec.schema)
    context.register_record_batches("memory", [batches or [empty]])
    return context.catalog().schema().table("memory")


def _is_whole(scan: FileScan, schema: pa.Schema) -> bool:
    """Whether the scan is the table as it stands, with nothing left to cast, add or reorder."""
    partitions = () if scan.partition_values is not None else scan.partition_columns
    fields = [(each.name, each.type) for each in (*scan.schema, *partitions)]
    # The JSON array reader is set up by SQL, whose types differ from ours in details.
    is_exact = not scan.json_array and not (scan.csv and scan.csv.null_regex)
    return is_exact and fields == [(each.name, each.type) for each in schema]


def _union(context: SessionContext, spec: FilesTable) -> DataFrame:
    union: DataFrame | None = None
    for number, scan in enumerate(spec.scans):
        rows = scans.add(context, f"scan_{number}", _as_read(scan))
        columns = _columns(scan, rows.schema())
        chosen = rows.select(*(_expression(field, columns) for field in spec.schema))
        union = chosen if union is None else union.union(chosen)
    assert union is not None, "a FilesTable holds at least one scan"
    return union


def _as_read(scan: FileScan) -> FileScan:
    """Read every column as text where a regex says what NULL is: the reader ignores it."""
    if not scan.csv or not scan.csv.null_regex:
        return scan
    text = pa.schema([field.with_type(pa.string()) for field in scan.schema])
    return FileScan(
        format=scan.format,
        paths=scan.paths,
        schema=text,
        extension=scan.extension,
        compression=scan.compression,
        csv=scan.csv,
        partition_columns=scan.partition_columns,
        partition_values=scan.partition_values,
        store=scan.store,
    )


def _columns(scan: FileScan, read: pa.Schema) -> dict[str, tuple[Expr, pa.DataType]]:
    """Return what the scan can give for each column name, and of which type."""
    regex = scan.csv.null_regex if scan.csv else None
    found = {field.name: (_column(field.name), field.type) for field in read}
    if regex:
        found |= {
            name: (_null_where(found[name][0], regex), pa.string()) for name in scan.schema.names
        }
    if scan.partition_values is not None:
        for field, value in zip(scan.partition_columns, scan.partition_values, strict=True):
            found[field.name] = (lit(value), pa.null())
    return found


def _expression(field: pa.Field, columns: dict[str, tuple[Expr, pa.DataType]]) -> Expr:
    if field.name not in columns:
        return lit(None).cast(field.type).alias(field.name)
    expression, type_ = columns[field.name]
    if type_ != field.type:
        expression = expression.cast(field.type)
    return expression.alias(field.name)


def _column(name: str) -> Expr:
    return col('"' + name.replace('"', '""') + '"')


def _null_where(column: Expr, regex: str) -> Expr:
    return f.when(f.regexp_like(column, lit(regex)), lit(None)).otherwise(column)
