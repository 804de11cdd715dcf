"""Registers one scan of files as a DataFusion table in a scratch context."""

from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
from datafusion import CsvReadOptions, DataFrame, SessionContext

from caraway_core.tables import CsvDialect, FileScan

types = pa.types

_SQL_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.uint8(): "TINYINT UNSIGNED",
    pa.uint16(): "SMALLINT UNSIGNED",
    pa.uint32(): "INT UNSIGNED",
    pa.uint64(): "BIGINT UNSIGNED",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.string(): "TEXT",
    pa.string_view(): "TEXT",
    pa.binary(): "BYTEA",
    pa.timestamp("s"): "TIMESTAMP(0)",
    pa.timestamp("ms"): "TIMESTAMP(3)",
    pa.timestamp("us"): "TIMESTAMP(6)",
    pa.timestamp("ns"): "TIMESTAMP(9)",
}


_TEXT_IS_VIEW = "datafusion.sql_parser.map_string_types_to_utf8view"


def add(context: SessionContext, name: str, scan: FileScan) -> DataFrame:
    """Register a scan under a name, and return its rows with the schema of the scan."""
    if scan.format == "csv":
        _add_csv(context, name, scan, scan.csv or CsvDialect())
    elif len(scan.paths) == 1 and not scan.json_array:
        _add_one(context, name, scan, scan.paths[0])
    elif scan.json_array or _is_expressible(scan.schema):
        views = "true" if pa.string_view() in scan.schema.types else "false"
        context.sql(f"SET {_TEXT_IS_VIEW} = {views}").collect()
        context.sql(_definition(name, scan)).collect()
    else:
        return _add_each(context, name, scan)
    return context.table(name)


def _add_csv(context: SessionContext, name: str, scan: FileScan, csv: CsvDialect) -> None:
    options = CsvReadOptions(
        has_header=csv.has_header,
        delimiter=csv.delimiter,
        quote=csv.quote,
        escape=csv.escape,
        comment=csv.comment,
        terminator=csv.terminator,
        newlines_in_values=csv.newlines_in_values,
        schema=scan.schema,
        file_extension=scan.extension,
        file_compression_type=scan.compression,
        table_partition_cols=_partitions(scan),
    )
    context.register_csv(name, [_url(scan, path) for path in scan.paths], options=options)


def _add_one(context: SessionContext, name: str, scan: FileScan, path: str) -> None:
    url, schema, ending = _url(scan, path), scan.schema, scan.extension
    partitions: list[tuple[str, str | pa.DataType]] = [*_partitions(scan)]
    match scan.format:
        case "parquet":
            context.register_parquet(name, url, partitions, schema=schema, file_extension=ending)
        case "json":
            context.register_json(
                name,
                url,
                schema=schema,
                file_extension=ending,
                table_partition_cols=partitions,
                file_compression_type=scan.compression or None,
            )
        case "avro":
            context.register_avro(name, url, schema, ending, partitions)
        case _:
            context.register_arrow(name, url, schema, ending, partitions)


def _add_each(context: SessionContext, name: str, scan: FileScan) -> DataFrame:
    """Return the union of one table per file, because SQL cannot express some of the types."""
    rows: DataFrame | None = None
    for number, path in enumerate(scan.paths):
        _add_one(context, f"{name}_{number}", scan, path)
        table = context.table(f"{name}_{number}")
        rows = table if rows is None else rows.union(table)
    assert rows is not None
    return rows


def _definition(name: str, scan: FileScan) -> str:
    columns = ", ".join(f"{_quoted(each.name)} {_sql_type(each.type)}" for each in scan.schema)
    paths = ", ".join("'" + _url(scan, path).replace("'", "''") + "'" for path in scan.paths)
    location = f"({paths})" if len(scan.paths) > 1 else paths
    return (
        f"CREATE EXTERNAL TABLE {name} ({columns}) STORED AS {scan.format.upper()} "
        f"LOCATION {location} {_options(scan)}"
    )


def _options(scan: FileScan) -> str:
    if scan.format != "json":
        return ""
    lines = "false" if scan.json_array else "true"
    options = [f"'format.newline_delimited' '{lines}'"]
    if scan.compression:
        options.append(f"'format.compression' '{scan.compression}'")
    return f"OPTIONS ({', '.join(options)})"


def _partitions(scan: FileScan) -> list[tuple[str, pa.DataType]]:
    if scan.partition_values is not None:
        return []
    return [(field.name, field.type) for field in scan.partition_columns]


def _url(scan: FileScan, path: str) -> str:
    # In a bare path, glob characters would be expanded; a URL is used as it is.
    if scan.store is None:
        return Path(path).as_uri() + ("/" if path.endswith("/") else "")
    start = f"{scan.store.kind}://{scan.store.alias}/"
    return start + quote(path.removeprefix(start), safe="/=")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _is_expressible(schema: pa.Schema) -> bool:
    return all(field.type in _SQL_TYPES or types.is_decimal128(field.type) for field in schema)


def _sql_type(type_: pa.DataType) -> str:
    if types.is_struct(type_):
        inner = ", ".join(f"{_quoted(each.name)} {_sql_type(each.type)}" for each in type_)
        return f"STRUCT<{inner}>"
    if types.is_list(type_):
        return f"{_sql_type(type_.value_type)}[]"
    if types.is_decimal128(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    return _SQL_TYPES.get(type_, "TEXT")
