"""Reading tables of databases, against their clients alone."""

import statistics
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from bench import databases, servers
from bench.databases import ROWS, Database
from bench.report import Figure

_RUNS = 5
_WHOLE = "SELECT * FROM t"
_RATIO, _MORE_MS = 1.2, 10.0


def measure() -> list[Figure]:
    """Compare a full read, and an aggregate of the database, with a client of each database."""
    found = []
    for opened in databases.ALL:
        with opened() as database, _runtime(database) as url:
            found += _compared(database, url)
    return found


def _compared(database: Database, url: str) -> list[Figure]:
    rounds = [
        (
            _seconds(lambda: _ask(url, _WHOLE)),
            _seconds(lambda: database.alone(_WHOLE)),
            _seconds(lambda: _ask(url, database.grouped)),
            _seconds(lambda: database.alone(database.grouped)),
        )
        for _ in range(_RUNS)
    ]
    ours, client, grouped, alone = map(statistics.median, zip(*rounds, strict=True))
    more_ms = (grouped - alone) * 1000
    title = database.title
    return [
        Figure(
            f"{ROWS:,} rows of ten columns from {title}, Arrow over HTTP; {database.client} alone",
            f"{ours:.2f} s", f"{client:.2f} s", ours / client, f"≤ {_RATIO:g}",
            ours <= _RATIO * client,
        ),
        Figure(
            f"an aggregate pushed down to {title}, Arrow over HTTP; {title} alone",
            f"{grouped * 1000:.1f} ms", f"{alone * 1000:.1f} ms", grouped / alone,
            f"≤ + {_MORE_MS:g} ms", more_ms <= _MORE_MS,
        ),
    ]  # fmt: skip


@contextmanager
def _runtime(database: Database) -> Iterator[str]:
    content = {
        "version": "v1",
        "kind": "Caraway",
        "name": "remote",
        "runtime": {"caching": {"sql_results": {"enabled": False}}},
        "datasets": [
            {"from": f"{database.source}:t", "name": "t", "params": dict(database.params)}
        ],
    }
    with TemporaryDirectory() as folder:
        manifest = Path(folder) / "caraway.yaml"
        manifest.write_text(yaml.safe_dump(content))
        with servers.caraway(manifest) as (url, _):
            yield url


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _ask(url: str, sql: str) -> None:
    request = urllib.request.Request(
        f"{url}/v1/sql",
        sql.encode(),
        {
            "content-type": "text/plain",
            "accept": "application/vnd.apache.arrow.stream",
            "cache-control": "no-cache",
        },
    )
    with urllib.request.urlopen(request) as answer:
        while answer.read(1 << 20):
            pass
