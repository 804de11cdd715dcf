"""Rate of point lookups by primary key in a million rows, against roapi."""

import asyncio
import random
import statistics
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from bench import servers
from bench.report import Figure, Section
from bench.settings import Settings

_ROWS = 1_000_000
_CONNECTIONS = 8
_SECONDS = 5.0
_RUNS = 3
_LOADED_S = 120.0
_GOAL = 2.0


def measure(_settings: Settings) -> Section:
    """Run `SELECT * ... WHERE id = n` with random n over eight persistent connections."""
    with TemporaryDirectory() as folder:
        table = Path(folder) / "items.parquet"
        with (
            servers.caraway(manifest(table)) as (ours, _),
            servers.roapi([f"items={table}"]) as theirs,
        ):
            wait_until_loaded(ours)
            rounds = [(rate(ours, "/v1/sql"), rate(theirs, "/api/sql")) for _ in range(_RUNS)]
    caraway, roapi = (statistics.median(column) for column in zip(*rounds, strict=True))
    figure = Figure(
        f"point lookups by primary key in {_ROWS:,} rows, {_CONNECTIONS} connections; roapi",
        f"{caraway:.0f} /s", f"{roapi:.0f} /s", caraway / roapi, f"≥ {_GOAL:g}",
        caraway >= _GOAL * roapi,
    )  # fmt: skip
    return Section("lookups", [figure], "")


def manifest(table: Path) -> Path:
    """Write the rows to a Parquet file, and next to it a manifest that accelerates them by key."""
    pq.write_table(_items(), table)
    path = table.with_name("caraway.yaml")
    path.write_text(
        "version: v1\nkind: Caraway\nname: lookups\ndatasets:\n"
        f"  - from: file:{table}\n    name: items\n"
        "    acceleration: {enabled: true, primary_key: id}\n"
    )
    return path


def _items() -> pa.Table:
    numbers = range(_ROWS)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": [f"item {number}" for number in numbers],
            "price": [number % 9973 / 100 for number in numbers],
            "stock": pa.array([number % 101 for number in numbers], pa.int32()),
            "is_sold": [number % 3 == 0 for number in numbers],
        }
    )


def wait_until_loaded(url: str) -> None:
    """Wait until the dataset is loaded; the server is up before that."""
    deadline = time.monotonic() + _LOADED_S
    request = urllib.request.Request(f"{url}/v1/sql", b"SELECT count(*) AS n FROM items")
    while True:
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                if str(_ROWS) in answer.read().decode():
                    return
        except urllib.error.HTTPError:
            pass
        if time.monotonic() > deadline:
            raise RuntimeError(f"the dataset is not loaded after {_LOADED_S:.0f} s")
        time.sleep(0.1)


def rate(url: str, path: str) -> float:
    """Measure one round and return the lookups per second."""
    return asyncio.run(_run(int(url.rpartition(":")[2]), path))


async def _run(port: int, path: str) -> float:
    began = time.perf_counter()
    counts = await asyncio.gather(
        *(connection(port, requests(path, seed), began + _SECONDS) for seed in range(_CONNECTIONS))
    )
    return sum(counts) / (time.perf_counter() - began)


def requests(path: str, seed: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield requests, each with the bytes that its response must contain."""
    chance = random.Random(seed)
    while True:
        number = chance.randrange(_ROWS)
        sql = f"SELECT * FROM items WHERE id = {number}".encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: text/plain\r\n"
            f"Accept: application/json\r\nContent-Length: {len(sql)}\r\n\r\n"
        )
        yield head.encode() + sql, f'"item {number}"'.encode()


async def connection(port: int, asked: Iterator[tuple[bytes, bytes]], stop: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    done = 0
    while time.perf_counter() < stop:
        request, expected = next(asked)
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert b" 200 " in head[:16], head
        if b"content-length:" in head:
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            body = await reader.readexactly(length)
        else:
            body = await reader.readuntil(b"0\r\n\r\n")
        assert expected in body, body
        done += 1
    writer.close()
    return done
