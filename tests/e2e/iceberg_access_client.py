"""Reads a table in S3 with PyIceberg, which has a key of the runtime and none of the store."""

import json
import sys

from pyiceberg.catalog import load_catalog


def main(url: str, key: str, mode: str) -> None:
    """Read with the access that the catalog delegates in a mode, and print the rows."""
    catalog = load_catalog(
        "caraway", uri=url, token=key, **{"header.X-Iceberg-Access-Delegation": mode}
    )
    table = catalog.load_table("public.trips")
    found = table.scan(row_filter="a > 1").to_arrow().to_pylist()
    if mode == "vended-credentials":  # They open no exports of scans.
        print(json.dumps({"io": type(table.io).__name__, "trips": found}))
        return
    planned = load_catalog(
        "planned",
        uri=url,
        token=key,
        **{"header.X-Iceberg-Access-Delegation": mode, "scan-planning-mode": "server"},
    )
    people = planned.load_table("public.people").scan().to_arrow().to_pylist()
    print(json.dumps({"io": type(table.io).__name__, "trips": found, "people": people}))


if __name__ == "__main__":
    main(*sys.argv[1:])
