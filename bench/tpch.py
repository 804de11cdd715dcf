"""The 22 queries of TPC-H over HTTP with Arrow results, against plain DataFusion."""

import multiprocessing
import statistics
import time
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa

from bench import data, servers
from bench.report import Figure

QUERIES = sorted((Path(__file__).parent / "queries").glob("q*.sql"))
_RUNS = 6
_SMALL = "0.1"
_CLIENTS = 8
_TURNS = 3


def measure() -> list[Figure]:
    """Compare the sums of the best times at two scales, and the throughput of eight clients."""
    return [_sums("1"), _sums(_SMALL), _together(_SMALL)]


def _sums(scale: str) -> Figure:
    """Run each query alternately on both, and compare the sums of the best times."""
    folder = data.tpch(scale)
    ours, theirs = [], []
    with servers.caraway(data.manifest(folder)) as (url, _), _plain(folder) as plain:
        for path in QUERIES:
            sql = path.read_text()
            pairs = [_pair(url, plain, sql, turn) for turn in range(_RUNS + 1)][1:]
            ours.append(min(pair[0] for pair in pairs))
            theirs.append(min(pair[1] for pair in pairs))
            print(f"  {path.stem}: {ours[-1] * 1000:7.1f} ms, plain {theirs[-1] * 1000:7.1f} ms")
    ratio = sum(ours) / sum(theirs)
    name = f"TPC-H scale {scale}, 22 queries, Arrow over HTTP; plain DataFusion, one process"
    return Figure(name, f"{sum(ours):.2f} s", f"{sum(theirs):.2f} s", ratio, "≤ 1.10",
                  ratio <= 1.10)  # fmt: skip


def _together(scale: str) -> Figure:
    """Let eight clients run all queries, each in a different order, alternately on both."""
    folder = data.tpch(scale)
    queries = [path.read_text() for path in QUERIES]
    shares = [queries[number:] + queries[:number] for number in range(_CLIENTS)]
    rates: list[tuple[float, float]] = []
    with servers.caraway(data.manifest(folder)) as (url, _), _plain(folder) as plain:
        for _ in range(_TURNS + 1):
            began = time.perf_counter()
            with ThreadPoolExecutor(_CLIENTS) as clients:
                list(clients.map(lambda share: [_ask(url, sql) for sql in share], shares))
            count = _CLIENTS * len(queries)
            rates.append((count / (time.perf_counter() - began), count / plain.ask_all(shares)))
    ours, theirs = (statistics.median(rate) for rate in zip(*rates[1:], strict=True))
    name = f"TPC-H scale {scale}, eight clients; plain DataFusion, eight threads of one process"
    ratio = ours / theirs
    return Figure(name, f"{ours:.1f} /s", f"{theirs:.1f} /s", ratio, "≥ 0.95", ratio >= 0.95)


def _pair(url: str, plain: "_plain", sql: str, turn: int) -> tuple[float, float]:
    """Time both in alternating order, since the second one benefits from warm caches."""
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
    """Plain DataFusion in a separate process, as a user would script it."""

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
        return self.ask_all([[sql]])

    def ask_all(self, shares: Sequence[Sequence[str]]) -> float:
        """Run each share in a thread of its own and return the total time in seconds."""
        self._pipe.send(shares)
        seconds: float = self._pipe.recv()
        return seconds


def _serve(pipe: Connection, folder: Path) -> None:
    from datafusion import SessionContext  # Only in the child, to keep the parent small.

    context = SessionContext()
    for table in data.TABLES:
        context.register_parquet(table, str(folder / f"{table}.parquet"))
    with ThreadPoolExecutor(_CLIENTS) as threads:
        while (shares := pipe.recv()) is not None:
            started = time.perf_counter()
            list(threads.map(lambda share: [context.sql(sql).collect() for sql in share], shares))
            pipe.send(time.perf_counter() - started)
