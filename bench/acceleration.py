"""Accelerated datasets on a cluster: scans and a full refresh."""

import contextlib
import http.client
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
from datafusion import SessionConfig, SessionContext

from bench import asking, clusters, data
from bench.report import Figure, Section
from bench.settings import Settings

SCANS = {
    "grouped": (
        "SELECT l_returnflag, l_linestatus, sum(l_quantity) AS q, avg(l_extendedprice) AS p, "
        "count(*) AS n FROM lineitem GROUP BY l_returnflag, l_linestatus ORDER BY 1, 2"
    ),
    "filtered": (
        "SELECT sum(l_extendedprice * l_discount) AS s FROM lineitem "
        "WHERE l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24"
    ),
    "counted": "SELECT count(*) AS n FROM lineitem WHERE l_comment LIKE '%special%'",
    "top": (
        "SELECT l_orderkey, l_extendedprice FROM lineitem ORDER BY l_extendedprice DESC LIMIT 10"
    ),
}
_ROUNDS, _REFRESHES = 7, 3
_SCAN_GOAL, _REFRESH_GOAL = 0.9, 1.3
_LIMIT_S = 300.0


def measure(settings: Settings) -> Section:
    """Compare a cluster of two single-core executors with plain DataFusion with two partitions.

    Scans run at two scales, since the overhead of the cluster per query is constant.
    """
    rows = ["| scan | scale | Caraway | DataFusion |", "|---|---|---|---|"]
    figures = []
    for scale in (settings.scale, settings.scan_scale):
        file = data.tpch(scale) / "lineitem.parquet"
        with accelerated_cluster(file) as (cluster, dataset):
            plain = _memory(file)
            times = {name: _scan(cluster.url, plain, sql) for name, sql in SCANS.items()}
            del plain
            if scale == settings.scale:
                refreshed_s = statistics.median(dataset.refresh() for _ in range(_REFRESHES))
        rows += [
            f"| {name} | {scale} | {ours * 1000:.0f} ms | {theirs * 1000:.0f} ms |"
            for name, (ours, theirs) in times.items()
        ]
        figures.append(_scanned(scale, times))
    file = data.tpch(settings.scale) / "lineitem.parquet"
    figures += [
        _refreshed(
            "DataFusion reading the file with two partitions, without storing the rows",
            refreshed_s,
            statistics.median(_read(file) for _ in range(_REFRESHES)),
        ),
        _refreshed(
            "DuckDB, CREATE TABLE AS in memory, two threads",
            refreshed_s,
            statistics.median(_loaded(file) for _ in range(_REFRESHES)),
        ),
    ]
    return Section("acceleration", figures, "\n".join(rows))


@contextlib.contextmanager
def accelerated_cluster(
    file: Path, programs: Path = clusters.BIN
) -> "Iterator[tuple[clusters.Cluster, _Dataset]]":
    """Run a cluster of two executors that hold the rows of a file in memory."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "caraway.yaml"
        manifest.write_text(
            "version: v1\nkind: Caraway\nname: accelerated\ndatasets:\n"
            f"  - {{from: 'file:{file}', name: lineitem, acceleration: {{enabled: true}}}}\n"
        )
        with clusters.cluster(manifest, executors=2, programs=programs) as cluster:
            dataset = _Dataset(cluster.url)
            dataset.wait_for_version(1)
            yield cluster, dataset


def _scanned(scale: str, times: Mapping[str, tuple[float, float]]) -> Figure:
    ours_s, theirs_s = (sum(each[side] for each in times.values()) for side in (0, 1))
    speed = theirs_s / ours_s
    return Figure(
        f"four scans of lineitem, scale {scale}, accelerated on two single-core executors; "
        "DataFusion over the same rows in memory, two partitions",
        f"{ours_s * 1000:.0f} ms", f"{theirs_s * 1000:.0f} ms", speed,
        f"≥ {_SCAN_GOAL} of its speed", speed >= _SCAN_GOAL,
    )  # fmt: skip


def _refreshed(alternative: str, ours_s: float, theirs_s: float) -> Figure:
    return Figure(
        f"full refresh of lineitem from Parquet until it is visible and durable; {alternative}",
        f"{ours_s:.2f} s", f"{theirs_s:.2f} s", ours_s / theirs_s,
        f"≤ {_REFRESH_GOAL}", ours_s <= _REFRESH_GOAL * theirs_s,
    )  # fmt: skip


def _scan(url: str, plain: SessionContext, sql: str) -> tuple[float, float]:
    connection = asking.Connection(url)
    pairs = []
    for _ in range(_ROUNDS + 1):
        ours = connection.time(sql)
        began = time.perf_counter()
        plain.sql(sql).collect()
        pairs.append((ours, time.perf_counter() - began))
    ours_s, theirs_s = zip(*pairs[1:], strict=True)
    return statistics.median(ours_s), statistics.median(theirs_s)


def _memory(file: Path) -> SessionContext:
    context = SessionContext(SessionConfig().with_target_partitions(2))
    batches = pq.read_table(file).to_batches(max_chunksize=8192)
    half = len(batches) // 2
    context.register_record_batches("lineitem", [batches[:half], batches[half:]])
    return context


def _read(file: Path) -> float:
    context = SessionContext(SessionConfig().with_target_partitions(2))
    context.register_parquet("lineitem", str(file))
    began = time.perf_counter()
    for batch in context.sql("SELECT * FROM lineitem").execute_stream():
        batch.to_pyarrow()
    return time.perf_counter() - began


def _loaded(file: Path) -> float:
    with duckdb.connect(config={"threads": 2}) as connection:
        began = time.perf_counter()
        connection.execute(f"CREATE TABLE lineitem AS FROM '{file}'")
        return time.perf_counter() - began


class _Dataset:
    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)

    def refresh(self) -> float:
        number = self._number()
        began = time.perf_counter()
        self._ask("POST", "/refresh")
        self.wait_for_version(number + 1)
        return time.perf_counter() - began

    def wait_for_version(self, number: int) -> None:
        deadline = time.monotonic() + _LIMIT_S
        while self._number() < number:
            if time.monotonic() > deadline:
                raise RuntimeError(f"no version {number} after {_LIMIT_S:.0f} s")
            time.sleep(0.01)

    def _number(self) -> int:
        document = self._ask("GET", "")
        return int(document.get("version", {}).get("number", 0))

    def _ask(self, method: str, tail: str) -> Any:
        self._connection.request(method, f"/v1/datasets/lineitem/acceleration{tail}", b"{}")
        return json.loads(self._connection.getresponse().read())
