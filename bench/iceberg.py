"""Reading an Iceberg table, against the same Parquet files as a dataset of files."""

import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from bench import data, servers
from bench.report import Figure
from tests.kit import iceberg_tables

_RUNS = 6
_STATEMENTS = (
    "SELECT l_returnflag, l_linestatus, sum(l_quantity), avg(l_extendedprice), count(*) FROM {} "
    "WHERE l_shipdate <= DATE '1998-09-02' GROUP BY 1, 2",
    "SELECT sum(l_extendedprice * l_discount) FROM {} WHERE l_shipdate >= DATE '1994-01-01' AND "
    "l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    "SELECT l_orderkey, l_comment FROM {} WHERE l_partkey < 20000",
)
_RATIO, _DELETED = 1.15, 100


def measure() -> list[Figure]:
    """Compare the sums of the best times of three statements, also with some rows deleted."""
    with TemporaryDirectory() as folder, _runtime(Path(folder)) as url:
        found: dict[str, list[float]] = {"plain": [], "whole": [], "less": []}
        for statement in _STATEMENTS:
            best = dict.fromkeys(found, float("inf"))
            for turn in range(_RUNS + 1):
                for name in sorted(found, reverse=bool(turn % 2)):
                    took_s = _ask(url, statement.format(name))
                    best[name] = min(best[name], took_s) if turn else best[name]
            for name, took_s in best.items():
                found[name].append(took_s)
    plain, whole, less = (sum(found[name]) for name in ("plain", "whole", "less"))
    ratio = whole / plain
    return [
        Figure(
            "lineitem scale 1 from Iceberg, three statements; the same Parquet file",
            f"{whole:.2f} s", f"{plain:.2f} s", ratio, f"≤ {_RATIO:g}", ratio <= _RATIO,
        ),
        Figure(
            f"the same with {_DELETED} deleted values and positions; the Parquet file",
            f"{less:.2f} s", f"{plain:.2f} s", less / plain, "", True,
        ),
    ]  # fmt: skip


@contextmanager
def _runtime(folder: Path) -> Iterator[str]:
    file = data.plain_strings(data.tpch("1")) / "lineitem.parquet"
    for name in ("whole", "less"):
        table = iceberg_tables.catalog(folder).create_table(
            f"n.{name}", pq.read_schema(file), (folder / name).as_uri()
        )
        table.add_files([file.as_uri()])
    (folder / "less" / "data").mkdir()
    iceberg_tables.delete_positions(folder / "less", {file.as_uri(): range(_DELETED)})
    gone = pa.table({"l_orderkey": pa.array(range(_DELETED), pa.int64())})
    iceberg_tables.delete_values(folder / "less", gone, {"l_orderkey": 1})
    content = {
        "version": "v1",
        "kind": "Caraway",
        "name": "lake",
        "runtime": {"caching": {"sql_results": {"enabled": False}}},
        "datasets": [
            {"from": f"file:{file}", "name": "plain"},
            {"from": "iceberg:whole", "name": "whole"},
            {"from": "iceberg:less", "name": "less"},
        ],
    }
    manifest = folder / "caraway.yaml"
    manifest.write_text(yaml.safe_dump(content))
    with servers.caraway(manifest) as (url, _):
        yield url


def _ask(url: str, sql: str) -> float:
    headers = {
        "content-type": "text/plain",
        "accept": "application/vnd.apache.arrow.stream",
        "cache-control": "no-cache",
    }
    request = urllib.request.Request(f"{url}/v1/sql", sql.encode(), headers)
    began = time.perf_counter()
    with urllib.request.urlopen(request) as answer:
        while answer.read(1 << 20):
            pass
    return time.perf_counter() - began
