"""Reading a PostgreSQL table, against the ADBC driver and against PostgreSQL alone."""

import statistics
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import adbc_driver_postgresql.dbapi as postgresql
import yaml

from bench import servers
from bench.report import Figure
from caraway_plugins.sources.postgres.databases import conninfo
from tests.kit.postgres import Server, serving

_ROWS = 1_000_000
_RUNS = 5
_COLUMNS = (
    "i AS id, i % 100 AS g, i * 1.5::float8 AS f, 'name ' || i AS s, "
    "(i / 7.0)::numeric(15,2) AS n, DATE '2020-01-01' + i % 1000 AS d, "
    "TIMESTAMP '2020-01-01' + i * interval '1 s' AS ts, "
    "i % 2 = 0 AS b, (i % 7)::smallint AS sm, i * 2::bigint AS k"
)
_GROUPED = "SELECT g, count(*), min(n), max(d) FROM t GROUP BY g"
_RATIO, _MORE_MS = 1.2, 10.0


def measure() -> list[Figure]:
    """Compare a full read with the driver alone, and an aggregate with the database alone."""
    with serving() as server, _runtime(server) as url:
        rounds = [
            (
                _seconds(lambda: _ask(url, "SELECT * FROM t")),
                _seconds(lambda: _alone(server, "SELECT * FROM t")),
                _seconds(lambda: _ask(url, _GROUPED)),
                _seconds(lambda: _alone(server, _GROUPED)),
            )
            for _ in range(_RUNS)
        ]
    ours, driver, grouped, database = map(statistics.median, zip(*rounds, strict=True))
    more_ms = (grouped - database) * 1000
    return [
        Figure(
            f"{_ROWS:,} rows of ten columns from PostgreSQL, Arrow over HTTP; ADBC driver alone",
            f"{ours:.2f} s", f"{driver:.2f} s", ours / driver, f"≤ {_RATIO:g}",
            ours <= _RATIO * driver,
        ),
        Figure(
            "an aggregate pushed down to PostgreSQL, Arrow over HTTP; PostgreSQL alone",
            f"{grouped * 1000:.1f} ms", f"{database * 1000:.1f} ms", grouped / database,
            f"≤ + {_MORE_MS:g} ms", more_ms <= _MORE_MS,
        ),
    ]  # fmt: skip


@contextmanager
def _runtime(server: Server) -> Iterator[str]:
    server.execute(
        f"CREATE TABLE t AS SELECT {_COLUMNS} FROM generate_series(1, {_ROWS}) i", "ANALYZE t"
    )
    content = {
        "version": "v1",
        "kind": "Caraway",
        "name": "remote",
        "runtime": {"caching": {"sql_results": {"enabled": False}}},
        "datasets": [{"from": "postgres:t", "name": "t", "params": server.params}],
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


def _alone(server: Server, sql: str) -> None:
    login = {"host": server.params["pg_host"], "user": "postgres", "dbname": "postgres"}
    with postgresql.connect(conninfo(login)) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        for _ in cursor.fetch_record_batch():
            pass
