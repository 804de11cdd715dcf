"""Reads a runtime's tables with Polars, Daft, Sail and Spark, and writes lines of JSON.

Each engine reads the rows of tables over files, and counts rows by conditions. An error is what
it says.
"""

import datetime
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

# Any: JSON, and values of rows.
Wanted = dict[str, Any]
Rows = Iterable[Iterable[Any]]
# Returns the rows of a table, by a condition in SQL or "" for all.
Reader = Callable[[str, str], Rows]


def main(wanted: Wanted) -> None:
    """Read everything with each engine."""
    for name in wanted["clients"]:
        read = ENGINES[name](wanted)
        for table, filters in wanted["filters"].items():
            if table not in wanted["planned"]:
                for each in ("", *filters):
                    what = f"{table} where {each}" if each else table
                    line = {"client": name, "what": what, "found": found_by(read, table, each)}
                    print(json.dumps(line, default=str), flush=True)


def found_by(read: Reader, table: str, condition: str) -> Any:
    """Return the rows of a table, or how many pass a condition, or the error."""
    try:
        return len(list(read(table, condition))) if condition else rows(read(table, ""))
    except Exception as exc:
        return f"{type(exc).__name__}: {exc}"[:2000]


def rows(found: Rows) -> list[list[str]]:
    """Return rows as text, sorted."""
    return sorted([str(value) for value in row] for row in found)


def plain(value: Any) -> Any:
    """Return a value of Spark as pyarrow has it in Python."""
    if isinstance(value, bytearray):
        return bytes(value)
    if hasattr(value, "asDict"):
        return {key: plain(each) for key, each in value.asDict().items()}
    if isinstance(value, dict):
        return [(key, plain(each)) for key, each in value.items()]
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value


def polars(wanted: Wanted) -> Reader:
    import polars as pl

    catalog = pyiceberg(wanted)

    def read(table: str, condition: str) -> Rows:
        frame = pl.scan_iceberg(catalog.load_table(f"public.{table}"))
        if condition:
            frame = pl.SQLContext(t=frame).execute(f"SELECT * FROM t WHERE {condition}")
        return by_arrow(frame.collect().to_arrow())

    return read


def daft(wanted: Wanted) -> Reader:
    import daft as engine

    catalog = pyiceberg(wanted)

    def read(table: str, condition: str) -> Rows:
        frame = engine.read_iceberg(catalog.load_table(f"public.{table}"))
        if condition:
            frame = frame.where(condition)
        return by_arrow(frame.to_arrow())

    return read


def by_arrow(table: Any) -> Rows:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def pyiceberg(wanted: Wanted) -> Any:
    from pyiceberg.catalog import load_catalog

    return load_catalog("c", type="rest", uri=wanted["url"], token=wanted["key"])


def sail(wanted: Wanted) -> Reader:
    options = f'name="c", type="iceberg-rest", uri="{wanted["url"]}"'
    os.environ["SAIL_CATALOG__LIST"] = f'[{{{options}, bearer_access_token="{wanted["key"]}"}}]'
    os.environ["SAIL_CATALOG__DEFAULT_CATALOG"] = "c"
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer(ip="127.0.0.1", port=0)
    server.start(background=True)
    _, port = server.listening_address
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    # It stops when nothing refers to it.
    session.server = server
    return by_sql(session)


def spark(wanted: Wanted) -> Reader:
    from pyspark.sql import SparkSession

    (jar,) = Path(wanted["jars"]).glob("iceberg-spark-runtime-*.jar")
    builder = SparkSession.builder.master("local[2]")
    for key, value in {
        "spark.jars": jar,
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalog.c": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.c.type": "rest",
        "spark.sql.catalog.c.uri": wanted["url"],
        "spark.sql.catalog.c.token": wanted["key"],
    }.items():
        builder = builder.config(key, str(value))
    return by_sql(builder.getOrCreate())


def by_sql(session: Any) -> Reader:
    def read(table: str, condition: str) -> Rows:
        found = session.sql(f"SELECT * FROM c.public.{table} WHERE {condition or 'true'}")
        zoned = {each.name for each in found.schema if each.dataType.typeName() == "timestamp"}
        for row in found.collect():
            yield [
                value.replace(tzinfo=datetime.UTC) if name in zoned else plain(value)
                for name, value in row.asDict().items()
            ]

    return read


ENGINES: Mapping[str, Callable[[Wanted], Reader]] = {
    "polars": polars,
    "daft": daft,
    "sail": sail,
    "spark": spark,
}

if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    main(json.loads(sys.argv[1]))
    sys.stdout.flush()
    # Threads of Daft sometimes crash the interpreter while it ends.
    os._exit(0)
