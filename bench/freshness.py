"""Strong reads of accelerated datasets on a cluster, against eventual reads.

Two clusters run side by side, each with its own Valkey, and differ only in
`runtime.query.consistency`. They are measured in short alternating turns, so that other load on
the machine affects both.
"""

import asyncio
import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import clusters, jobs, lookups
from bench.report import Figure, Section
from bench.settings import Settings

_TURN_S = 1.0
_ROUNDS = 10
_LEAST = 0.7
"""Minimum ratio to the eventual rate. A statement takes about 10 ms in a cluster. A strong read
adds one round trip of 1 to 3 ms, which concurrent reads share. A lower ratio means more of them."""
_ANY = "SELECT 1 AS one FROM items LIMIT 1"
_CONNECTIONS = (1, 8)
Requests = Callable[[int], Iterator[tuple[bytes, bytes]]]


def measure(_settings: Settings) -> Section:
    """Measure point lookups and a minimal statement over 1 and 8 connections."""
    with TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        urls = [
            stack.enter_context(_cluster(Path(folder), each)) for each in ("strong", "eventual")
        ]
        figures = [
            _figure(name, requests, connections, urls)
            for name, requests in (("point lookups", _lookups), ("`SELECT 1 ... LIMIT 1`", _any))
            for connections in _CONNECTIONS
        ]
    return Section("freshness", figures, "")


@contextlib.contextmanager
def _cluster(folder: Path, consistency: str) -> Iterator[str]:
    own = folder / consistency
    own.mkdir()
    manifest = lookups.manifest(own / "items.parquet")
    runtime = (
        "runtime:\n"
        f"  query: {{consistency: {consistency}}}\n"
        "  caching: {sql_results: {enabled: false}}\n"
        "datasets:\n"
    )
    manifest.write_text(manifest.read_text().replace("datasets:\n", runtime))
    with jobs.valkey() as state, clusters.cluster(manifest, executors=1, state=state) as cluster:
        lookups.wait_until_loaded(cluster.url)
        yield cluster.url


def _figure(name: str, requests: Requests, connections: int, urls: list[str]) -> Figure:
    rates: list[list[float]] = [[], []]
    for number in range(_ROUNDS):
        for side in (0, 1) if number % 2 else (1, 0):
            rates[side].append(asyncio.run(_rate(urls[side], requests, connections)))
    strong, eventual = map(statistics.median, rates)
    ratio = statistics.median(ours / theirs for ours, theirs in zip(*rates, strict=True))
    return Figure(
        f"{name}, connections: {connections}; eventual reads",
        f"{strong:.0f} /s", f"{eventual:.0f} /s", ratio, f"≥ {_LEAST:g}", ratio >= _LEAST,
    )  # fmt: skip


async def _rate(url: str, requests: Requests, connections: int) -> float:
    began, port = time.perf_counter(), int(url.rpartition(":")[2])
    asking = (
        lookups.connection(port, requests(seed), began + _TURN_S) for seed in range(connections)
    )
    counts = await asyncio.gather(*asking)
    return sum(counts) / (time.perf_counter() - began)


def _lookups(seed: int) -> Iterator[tuple[bytes, bytes]]:
    return lookups.requests("/v1/sql", seed)


def _any(_seed: int) -> Iterator[tuple[bytes, bytes]]:
    head = (
        "POST /v1/sql HTTP/1.1\r\nHost: bench\r\nContent-Type: text/plain\r\n"
        f"Accept: application/json\r\nContent-Length: {len(_ANY)}\r\n\r\n"
    )
    while True:
        yield (head + _ANY).encode(), b'"one"'
