"""Reads a table in S3 with clients that have a key of the runtime, and none of the store."""

import glob
import json
import os
import sys

import duckdb
from pyiceberg.catalog import load_catalog


def main(url: str, key: str, mode: str) -> None:
    """Read with the access that the catalog delegates in a mode, and print the rows."""
    catalog = load_catalog(
        "caraway", uri=url, token=key, **{"header.X-Iceberg-Access-Delegation": mode}
    )
    table = catalog.load_table("public.trips")
    found = table.scan(row_filter="a > 1").to_arrow().to_pylist()
    if mode == "vended-credentials":  # They open no exports of scans.
        duck = by_duckdb(url, key)
        print(json.dumps({"io": type(table.io).__name__, "trips": found, "duckdb": duck}))
        return
    planned = load_catalog(
        "planned",
        uri=url,
        token=key,
        **{"header.X-Iceberg-Access-Delegation": mode, "scan-planning-mode": "server"},
    )
    people = planned.load_table("public.people").scan().to_arrow().to_pylist()
    print(json.dumps({"io": type(table.io).__name__, "trips": found, "people": people}))


def by_duckdb(url: str, key: str) -> list[int]:
    """Read with DuckDB, which asks for temporary credentials by itself."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    place = os.path.dirname(os.path.dirname(duckdb.__file__))
    for name in ("avro", "httpfs", "iceberg"):
        (path,) = glob.glob(
            f"{place}/duckdb_extension_{name}/**/*.duckdb_extension", recursive=True
        )
        connection.execute(f"LOAD '{path}'")
    connection.execute(f"CREATE SECRET k (TYPE iceberg, TOKEN '{key}')")
    connection.execute(f"ATTACH 'caraway' AS c (TYPE iceberg, ENDPOINT '{url}', SECRET k)")
    found = connection.execute("SELECT a FROM c.public.trips WHERE a > 1 ORDER BY a").fetchall()
    return [row[0] for row in found]


if __name__ == "__main__":
    main(*sys.argv[1:])
