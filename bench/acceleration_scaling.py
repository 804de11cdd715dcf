"""Scaling a cluster with ten accelerated datasets from two to three executors under load."""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench import asking, clusters
from bench.report import Figure, Section
from bench.settings import Settings

_DATASETS, _ROWS, _CLIENTS = 10, 400_000, 4
_BEFORE_S, _MOVING_S, _LIMIT_S = 20.0, 20.0, 240.0
_WAIT_GOAL, _MOVE_GOAL = 3.0, 1.1


def measure(settings: Settings) -> Section:
    """Scale a cluster from two to three single-core executors while four clients run queries."""
    with tempfile.TemporaryDirectory() as text:
        manifest = _write(Path(text))
        with clusters.cluster(manifest, executors=2) as cluster:
            _until(lambda: _placed(cluster.url), _DATASETS)
            load = _Load(cluster.url)
            with load:
                time.sleep(_BEFORE_S)
                before = _owners(cluster.url)
                load.mark()
                cluster.scale(3)
                _until(lambda: _executors(cluster.url), 3)
                time.sleep(_MOVING_S)
            after = _owners(cluster.url)
    moved = sum(size for part, (owner, size) in after.items() if before[part][0] != owner)
    least = sum(size for _, size in after.values()) / 3
    calm_s, moving_s = (_p99(each) for each in (load.calm, load.moving))
    figures = [
        Figure(
            "99th percentile of query times from the scale command until 20 s after the third "
            "executor is ready; the same in the 20 s before",
            f"{moving_s * 1000:.0f} ms", f"{calm_s * 1000:.0f} ms", moving_s / calm_s,
            f"≤ {_WAIT_GOAL:g}, no failures",
            moving_s <= _WAIT_GOAL * calm_s and not load.errors,
        ),
        Figure(
            "bytes that moved to another executor; a third of all bytes",
            f"{moved / 1e6:.1f} MB", f"{least / 1e6:.1f} MB", moved / least,
            f"≤ {_MOVE_GOAL:g}", moved <= _MOVE_GOAL * least,
        ),
    ]  # fmt: skip
    text = (
        f"{len(load.calm)} queries before the scale command, {len(load.moving)} after it, "
        f"{len(load.errors)} failed. The medians are {statistics.median(load.calm) * 1000:.0f} and "
        f"{statistics.median(load.moving) * 1000:.0f} ms. Starting the third executor occupies one "
        "of the two cores for about ten seconds."
    )
    if load.errors:
        text += f" The first failure: {load.errors[0]}"
    return Section("acceleration-scaling", figures, text)


class _Load:
    """Clients that run queries continuously."""

    def __init__(self, url: str) -> None:
        self.calm: list[float] = []
        self.moving: list[float] = []
        self.errors: list[str] = []
        self._url = url
        self._into = self.calm
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(_CLIENTS)]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def mark(self) -> None:
        """Count queries from here on separately."""
        self._into = self.moving

    def _ask(self, number: int) -> None:
        turn = number
        while not self._ending.is_set():
            turn += 1
            sql = f"SELECT g, sum(v) AS s, count(*) AS n FROM t{turn % _DATASETS} GROUP BY g"
            try:
                answer = asking.ask(self._url, sql)
            except asking.FailedError as exc:
                self.errors.append(str(exc))
            else:
                self._into.append(answer.seconds)
                if sum(answer.rows["n"].to_pylist()) != _ROWS:
                    self.errors.append(f"wrong result: {answer.rows.to_pylist()}")


def _write(folder: Path) -> Path:
    table = pa.table(
        {
            "id": pa.array(range(_ROWS)),
            "g": pa.array([n % 10 for n in range(_ROWS)]),
            "v": pa.array([n / 3 for n in range(_ROWS)]),
        }
    )
    lines = ["version: v1", "kind: Caraway", "name: scaling", "runtime:"]
    lines += ["  query: {distribution: {small_table_size: 1MiB}}", "datasets:"]
    for number in range(_DATASETS):
        pq.write_table(table, folder / f"t{number}.parquet")
        cut = ", partition_by: ['bucket(12, id)']" if number % 2 else ""
        lines.append(
            f"  - {{from: 'file:t{number}.parquet', name: t{number}, "
            f"acceleration: {{enabled: true{cut}}}}}"
        )
    manifest = folder / "caraway.yaml"
    manifest.write_text("\n".join(lines) + "\n")
    return manifest


def _owners(url: str) -> Mapping[tuple[str, str], tuple[str, int]]:
    rows = asking.ask(
        url, 'SELECT dataset, "partition", executors[1] AS owner, size_bytes '
        "FROM runtime.partitions",
    ).rows.to_pylist()  # fmt: skip
    return {(r["dataset"], r["partition"]): (r["owner"], r["size_bytes"]) for r in rows}


def _placed(url: str) -> int:
    rows = asking.ask(url, "SELECT count(DISTINCT dataset) AS n FROM runtime.partitions").rows
    return int(rows["n"][0].as_py())


def _executors(url: str) -> int:
    sql = "SELECT count(*) AS n FROM runtime.executors WHERE state = 'ready'"
    return int(asking.ask(url, sql).rows["n"][0].as_py())


def _until(look: Callable[[], int], count: int) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while look() < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"not {count} within {_LIMIT_S:g} s")
        time.sleep(0.2)


def _p99(waits: list[float]) -> float:
    return sorted(waits)[int(len(waits) * 0.99)]
