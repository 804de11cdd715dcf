"""Reads a runtime's tables with PyIceberg and DuckDB, and writes the results as lines of JSON."""

import glob
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog

# Any: JSON.
Wanted = dict[str, Any]


def main(wanted: Wanted) -> None:
    """Read everything, or run statements."""
    if "statements" in wanted:
        connection = connected(wanted)
        connection.execute("USE c.public")
        for name, sql in wanted["statements"].items():
            found = connection.execute(sql).fetch_arrow_table()
            pq.write_table(found, f"{wanted['folder']}/{name}.parquet")
        return
    # DuckDB comes first: it reads no snapshot that is younger than its transaction.
    for name, read in (("duckdb", by_duckdb), ("pyiceberg", by_pyiceberg)):
        if name in wanted["clients"]:
            for what, found in read(wanted).items():
                print(json.dumps({"client": name, "what": what, "found": found}, default=str))


def by_pyiceberg(wanted: Wanted) -> dict[str, Any]:
    """Read with PyIceberg, which plans by itself, and where it cannot on the server."""
    s3 = {f"s3.{name}": value for name, value in (wanted["s3"] or {}).items()}
    options = {"type": "rest", "uri": wanted["url"], "token": wanted["key"], **s3}
    own = load_catalog("own", **options)
    planned = load_catalog("planned", **options, **{"scan-planning-mode": "server"})
    found: dict[str, Any] = {
        "namespaces": own.list_namespaces(),
        "tables": sorted(name for _, name in own.list_tables("public")),
        "views": [name for _, name in own.list_views("public")],
        "exists": [own.table_exists("public.trips"), own.table_exists("public.none")],
        "missing": failure(lambda: own.load_table("public.none")),
        "unplanned": failure(lambda: own.load_table("public.people").scan().to_arrow()),
        "write": failure(lambda: own.load_table("public.trips").delete("fare > 2")),
        "key": failure(lambda: load_catalog("x", **{**options, "token": "wrong"})),
    }
    for table, filters in wanted["filters"].items():
        catalog = planned if table in wanted["planned"] else own
        if table not in wanted["large"]:
            found[table] = rows(catalog.load_table(f"public.{table}").scan().to_arrow())
        for each in filters:
            scan = catalog.load_table(f"public.{table}").scan(row_filter=each)
            found[f"{table} where {each}"] = scan.to_arrow().num_rows
    if earlier := wanted["earlier"]:
        scan = own.load_table("public.moves").scan(snapshot_id=earlier)
        found["earlier"] = scan.to_arrow().to_pylist()
    scan = planned.load_table("public.trips").scan(selected_fields=("fare",), row_filter="fare > 2")
    projected = scan.to_arrow()
    found["planned fares"] = [projected.schema.names, projected.num_rows]
    return found


def by_duckdb(wanted: Wanted) -> dict[str, Any]:
    """Read with DuckDB, with extensions from wheels."""
    connection = connected(wanted)

    def asked(sql: str) -> Any:
        return connection.execute(sql).fetch_arrow_table()

    names = asked("SELECT name FROM (SHOW ALL TABLES) WHERE database = 'c' AND schema = 'public'")
    found: dict[str, Any] = {
        "tables": sorted(names.column(0).to_pylist()),
        "missing": failure(lambda: asked("SELECT * FROM c.public.none")),
        "unplanned": failure(lambda: asked("SELECT * FROM c.public.people")),
    }
    if earlier := wanted["earlier"]:
        sql = f"SELECT * FROM c.public.moves AT (VERSION => {earlier})"
        found["earlier"] = asked(sql).to_pylist()
    for table, filters in wanted["filters"].items():
        if table in wanted["planned"]:
            continue
        if table not in wanted["large"]:
            found[table] = rows(asked(f"SELECT * FROM c.public.{table}"))
        for each in filters:
            counted = asked(f"SELECT count(*) AS n FROM c.public.{table} WHERE {each}")
            found[f"{table} where {each}"] = counted.column(0).to_pylist()[0]
    return found


def connected(wanted: Wanted) -> duckdb.DuckDBPyConnection:
    """Return a connection of DuckDB with the catalog as `c`."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in ("avro", "httpfs", "iceberg"):
        place = os.path.dirname(os.path.dirname(duckdb.__file__))
        (path,) = glob.glob(
            f"{place}/duckdb_extension_{name}/**/*.duckdb_extension", recursive=True
        )
        connection.execute(f"LOAD '{path}'")
    connection.execute(f"CREATE SECRET k (TYPE iceberg, TOKEN '{wanted['key']}')")
    more = ""
    if s3 := wanted["s3"]:
        host = s3["endpoint"].partition("://")[2]
        connection.execute(
            f"CREATE SECRET s (TYPE s3, KEY_ID '{s3['access-key-id']}', "
            f"SECRET '{s3['secret-access-key']}', REGION '{s3['region']}', "
            f"ENDPOINT '{host}', USE_SSL false, URL_STYLE 'path')"
        )
        more = ", ACCESS_DELEGATION_MODE 'none'"
    connection.execute(
        f"ATTACH 'caraway' AS c (TYPE iceberg, ENDPOINT '{wanted['url']}', SECRET k{more})"
    )
    return connection


def rows(table: pa.Table) -> list[list[str]]:
    """Return rows as text, sorted."""
    return sorted([str(value) for value in row.values()] for row in table.to_pylist())


def failure(call: Callable[[], Any]) -> str:
    """Return the error of a call."""
    try:
        return f"no error: {call()}"
    except Exception as exc:
        return f"{type(exc).__name__}: {exc}"


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
