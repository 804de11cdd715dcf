"""Request rate of a minimal query, against roapi."""

import asyncio
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import servers
from bench.report import Figure

_CONNECTIONS = 8
_SECONDS = 4.0
_RUNS = 3


def measure() -> list[Figure]:
    """Measure `SELECT 1` over eight persistent connections, with and without the results cache."""
    with TemporaryDirectory() as folder:
        table = Path(folder) / "t.csv"
        with servers.caraway(manifest(table)) as (ours, _), servers.roapi([f"t={table}"]) as theirs:
            rounds = [
                (
                    rate(ours, "/v1/sql"),
                    rate(ours, "/v1/sql", "Cache-Control: no-cache\r\n"),
                    rate(theirs, "/api/sql"),
                )
                for _ in range(_RUNS)
            ]
    cached, computed, roapi = (statistics.median(column) for column in zip(*rounds, strict=True))
    return [
        Figure("SELECT 1, 8 connections, results cache on (default); roapi", f"{cached:.0f} /s",
               f"{roapi:.0f} /s", cached / roapi, "≥ 1", cached >= roapi),
        Figure("SELECT 1, 8 connections, uncached (`no-cache`); roapi", f"{computed:.0f} /s",
               f"{roapi:.0f} /s", computed / roapi, "≥ 0.5", computed >= 0.5 * roapi),
    ]  # fmt: skip


def manifest(table: Path) -> Path:
    """Write a table with one row, and next to it a manifest that serves it."""
    table.write_text("a,b\n1,x\n")
    path = table.with_name("caraway.yaml")
    path.write_text(
        f"version: v1\nkind: Caraway\nname: tiny\ndatasets:\n  - from: file:{table}\n    name: t\n"
    )
    return path


def rate(url: str, path: str, headers: str = "") -> float:
    """Measure one round and return the requests per second. Each header ends in a line break."""
    return asyncio.run(_run(url.rpartition(":")[2], path, headers))


async def _run(port: str, path: str, headers: str) -> float:
    request = (
        f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: text/plain\r\n"
        f"Accept: application/json\r\n{headers}Content-Length: 8\r\n\r\nSELECT 1"
    ).encode()
    stop = time.perf_counter() + _SECONDS
    counts = await asyncio.gather(
        *(_connection(int(port), request, stop) for _ in range(_CONNECTIONS))
    )
    return sum(counts) / _SECONDS


async def _connection(port: int, request: bytes, stop: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    done = 0
    while time.perf_counter() < stop:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert b" 200 " in head[:16], head
        if b"content-length:" in head:
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
        else:
            await reader.readuntil(b"0\r\n\r\n")
        done += 1
    writer.close()
    return done
