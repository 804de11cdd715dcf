"""Full scans by PyIceberg: of tables of a catalog, and of one that PyIceberg wrote itself.

Arguments: `write FOLDER FILE` makes a table in a folder, with the rows of a Parquet file. Then
`scan FOLDER URL ROUNDS TABLE ...` scans it and tables of the catalog at URL in turn, and writes one
line of JSON: the seconds of each round, by table; "own" is the one in the folder. Needs only
PyIceberg and pyarrow.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog

_NAME = "public.lineitem"


def main(work: str, folder: str, *arguments: str) -> None:
    """Write the table, or scan."""
    own = load_catalog(
        "own", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}"
    )
    if work == "write":
        (file,) = arguments
        rows = pq.read_table(file)
        own.create_namespace("public")
        own.create_table(_NAME, schema=rows.schema).append(rows)
    else:
        url, rounds, *tables = arguments
        ours = load_catalog("ours", type="rest", uri=url)
        scans: dict[str, Callable[[], Any]] = {"own": partial(own.load_table, _NAME)}
        for name in tables:
            scans[name] = partial(ours.load_table, f"public.{name}")
        print(json.dumps(scanned(scans, int(rounds))))


def scanned(scans: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each round; the first, which reads files from the disk, is left out."""
    found: dict[str, list[float]] = {name: [] for name in scans}
    counts = set()
    for _ in range(rounds + 1):
        for name, load in scans.items():
            began = time.perf_counter()
            counts.add(load().scan().to_arrow().num_rows)
            found[name].append(time.perf_counter() - began)
    assert len(counts) == 1, counts
    return {name: seconds[1:] for name, seconds in found.items()}


if __name__ == "__main__":
    main(*sys.argv[1:])
