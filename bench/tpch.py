"""The 22 queries of TPC-H through HTTP with Arrow answers, against plain DataFusion."""

import multiprocessing
import time
import urllib.request
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa

from bench import data, servers
from bench.report import Figure

QUERIES = sorted((Path(__file__).parent / "queries").glob("q*.sql"))
_RUNS = 6


def measure() -> list[Figure]:
    """Run each query in turn here and there, and compare the sums of the best."""
    folder = data.tpch()
    ours, theirs = [], []
    with servers.caraway(data.manifest(folder)) as (url, _), _plain(folder) as plain:
        for path in QUERIES:
            sql = path.read_text()
            pairs = [_pair(url, plain, sql, turn) for turn in range(_RUNS + 1)][1:]
            ours.append(min(pair[0] for pair in pairs))
            theirs.append(min(pair[1] for pair in pairs))
            print(f"  {path.stem}: {ours[-1] * 1000:7.1f} ms, plain {theirs[-1] * 1000:7.1f} ms")
    ratio = sum(ours) / sum(theirs)
    name = "TPC-H scale 1, 22 queries, Arrow over HTTP; plain DataFusion, one process"
    return [Figure(name, f"{sum(ours):.2f} s", f"{sum(theirs):.2f} s", ratio, "≤ 1.10",
                   ratio <= 1.10)]  # fmt: skip


def _pair(url: str, plain: "_plain", sql: str, turn: int) -> tuple[float, float]:
    """Time both; who goes first changes, since the second finds the files in the caches."""
    if turn % 2:
        return _ask(url, sql), plain.ask(sql)
    theirs = plain.ask(sql)
    return _ask(url, sql), theirs


def _ask(url: str, sql: str) -> float:
    request = urllib.request.Request(
        f"{url}/v1/sql",
        sql.encode(),
        {
            "Content-Type": "text/plain",
            "Accept": "application/vnd.apache.arrow.stream",
            "Cache-Control": "no-cache",
        },
    )
    started = time.perf_counter()
    with urllib.request.urlopen(request) as answer:
        pa.ipc.open_stream(answer).read_all()
    return time.perf_counter() - started


class _plain:
    """Plain DataFusion in a process of its own, as a user would script it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> "_plain":
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there, self._folder))
        self._process.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._pipe.send(None)
        self._process.join(10)

    def ask(self, sql: str) -> float:
        self._pipe.send(sql)
        seconds: float = self._pipe.recv()
        return seconds


def _serve(pipe: Connection, folder: Path) -> None:
    from datafusion import SessionContext  # In the child: the parent must stay small.

    context = SessionContext()
    for table in data.TABLES:
        context.register_parquet(table, str(folder / f"{table}.parquet"))
    while (sql := pipe.recv()) is not None:
        started = time.perf_counter()
        context.sql(sql).collect()
        pipe.send(time.perf_counter() - started)
