"""Reads a runtime's tables with PyIceberg and DuckDB, and writes what it found as lines of JSON."""

import glob
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
from pyiceberg.catalog import load_catalog

FILTERS = {
    "trips": ("city = 'Bern' and fare > 2", "fare is null"),
    "kinds": ("l >= 10 and l < 20", "p < -1.00", "day = '2024-01-05'", "s = 'name 7'"),
    "every": ("c3 = 1", "c8 > 5", "c12 < 0", "c24 is not null"),
    "quick": ("id in (3, 5, 7)",),
    "people": ("name = 'Ann'",),
    "moments": ("a = 2",),
    "dear": ("n > 1",),
}
PLANNED = ("people", "moments", "dear")


def main(url: str, key: str, earlier: str) -> None:
    """Read everything, also a snapshot of `moves` that is not the current one."""
    # DuckDB comes first: it reads no snapshot that is younger than its transaction.
    for name, read in (("duckdb", by_duckdb), ("pyiceberg", by_pyiceberg)):
        for what, found in read(url, key, int(earlier)).items():
            print(json.dumps({"client": name, "what": what, "found": found}, default=str))


def by_pyiceberg(url: str, key: str, earlier: int) -> dict[str, Any]:
    """Read with PyIceberg, which plans by itself, and where it cannot on the server."""
    options = {"type": "rest", "uri": url, "token": key}
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
    for table, filters in FILTERS.items():
        catalog = planned if table in PLANNED else own
        found[table] = rows(catalog.load_table(f"public.{table}").scan().to_arrow())
        for each in filters:
            scan = catalog.load_table(f"public.{table}").scan(row_filter=each)
            found[f"{table} where {each}"] = scan.to_arrow().num_rows
    scan = own.load_table("public.moves").scan(snapshot_id=earlier)
    found["earlier"] = scan.to_arrow().to_pylist()
    scan = planned.load_table("public.trips").scan(selected_fields=("fare",), row_filter="fare > 2")
    found["planned trips"] = scan.to_arrow().num_rows
    return found


def by_duckdb(url: str, key: str, earlier: int) -> dict[str, Any]:
    """Read with DuckDB, with extensions from wheels."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in ("avro", "httpfs", "iceberg"):
        place = os.path.dirname(os.path.dirname(duckdb.__file__))
        (path,) = glob.glob(
            f"{place}/duckdb_extension_{name}/**/*.duckdb_extension", recursive=True
        )
        connection.execute(f"LOAD '{path}'")
    connection.execute(f"CREATE SECRET k (TYPE iceberg, TOKEN '{key}')")
    connection.execute(f"ATTACH 'caraway' AS c (TYPE iceberg, ENDPOINT '{url}', SECRET k)")

    def asked(sql: str) -> Any:
        return connection.execute(sql).fetch_arrow_table()

    names = asked("SELECT name FROM (SHOW ALL TABLES) WHERE database = 'c' AND schema = 'public'")
    found: dict[str, Any] = {
        "tables": sorted(names.column(0).to_pylist()),
        "missing": failure(lambda: asked("SELECT * FROM c.public.none")),
        "unplanned": failure(lambda: asked("SELECT * FROM c.public.people")),
        "earlier": asked(f"SELECT * FROM c.public.moves AT (VERSION => {earlier})").to_pylist(),
    }
    for table, filters in FILTERS.items():
        if table in PLANNED:
            continue
        found[table] = rows(asked(f"SELECT * FROM c.public.{table}"))
        for each in filters:
            counted = asked(f"SELECT count(*) AS n FROM c.public.{table} WHERE {each}")
            found[f"{table} where {each}"] = counted.column(0).to_pylist()[0]
    return found


def rows(table: pa.Table) -> list[list[str]]:
    """Return rows in an order of their own."""
    return sorted([str(value) for value in row.values()] for row in table.to_pylist())


def failure(call: Callable[[], Any]) -> str:
    """Return the error of a call."""
    try:
        return f"no error: {call()}"
    except Exception as exc:
        return f"{type(exc).__name__}: {exc}"


if __name__ == "__main__":
    main(*sys.argv[1:])
