"""Databases with a table of a million rows, and their clients without a runtime."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import adbc_driver_postgresql.dbapi as postgresql
import duckdb
import pymysql
from adbc_driver_sqlite import dbapi as sqlite
from pymysql.cursors import SSCursor

from caraway_plugins.sources.postgres.databases import conninfo
from tests.kit import mariadb, postgres, sqlite_files

ROWS = 1_000_000
_POSTGRES = (
    "i AS id, i % 100 AS g, i * 1.5::float8 AS f, 'name ' || i AS s, "
    "(i / 7.0)::numeric(15,2) AS n, DATE '2020-01-01' + i % 1000 AS d, "
    "TIMESTAMP '2020-01-01' + i * interval '1 s' AS ts, "
    "i % 2 = 0 AS b, (i % 7)::smallint AS sm, i * 2::bigint AS k"
)
_DUCKDB = (
    "i::int AS id, (i % 100)::int AS g, i * 1.5::double AS f, 'name ' || i AS s, "
    "(i / 7.0)::decimal(15,2) AS n, DATE '2020-01-01' + (i % 1000)::int AS d, "
    "TIMESTAMP '2020-01-01' + to_seconds(i) AS ts, "
    "i % 2 = 0 AS b, (i % 7)::smallint AS sm, i * 2::bigint AS k"
)
_MYSQL = (
    "seq AS id, CAST(seq % 100 AS INT) AS g, seq * 1.5e0 AS f, concat('name ', seq) AS s, "
    "CAST(seq / 7 AS DECIMAL(15,2)) AS n, DATE '2020-01-01' + INTERVAL seq % 1000 DAY AS d, "
    "TIMESTAMP '2020-01-01 00:00:00' + INTERVAL seq SECOND AS ts, seq % 2 = 0 AS b, "
    "CAST(seq % 7 AS INT) AS sm, seq * 2 AS k"
)
_SQLITE = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, g INT4, f DOUBLE, s TEXT, n TEXT, d DATE, "
    "ts TIMESTAMP, b BOOLEAN, sm SMALLINT, k BIGINT)",
    f"WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {ROWS}) "
    "INSERT INTO t SELECT i, i % 100, i * 1.5, 'name ' || i, printf('%.2f', i / 7.0), "
    "date('2020-01-01', (i % 1000) || ' days'), datetime('2020-01-01', i || ' seconds'), "
    "i % 2 = 0, i % 7, i * 2 FROM c",
)


@dataclass(frozen=True, slots=True)
class Database:
    """A database that serves the table `t`. `alone` reads a statement with its client."""

    source: str
    title: str
    client: str
    params: Mapping[str, str]
    alone: Callable[[str], None]
    grouped: str


@contextmanager
def in_postgres() -> Iterator[Database]:
    with postgres.serving() as server:
        server.execute(
            f"CREATE TABLE t AS SELECT {_POSTGRES} FROM generate_series(1, {ROWS}) i", "ANALYZE t"
        )
        login = {"host": server.params["pg_host"], "user": "postgres", "dbname": "postgres"}

        def alone(sql: str) -> None:
            with postgresql.connect(conninfo(login)) as connection, connection.cursor() as cursor:
                cursor.execute(sql)
                for _ in cursor.fetch_record_batch():
                    pass

        grouped = "SELECT g, count(*), min(n), max(d) FROM t GROUP BY g"
        yield Database("postgres", "PostgreSQL", "ADBC driver", server.params, alone, grouped)


@contextmanager
def in_duckdb() -> Iterator[Database]:
    with TemporaryDirectory() as folder:
        file = str(Path(folder) / "t.duckdb")
        with closing(duckdb.connect(file)) as connection:
            connection.execute(f"CREATE TABLE t AS SELECT {_DUCKDB} FROM range(1, {ROWS + 1}) r(i)")

        def alone(sql: str) -> None:
            with closing(duckdb.connect(file, read_only=True)) as connection:
                for _ in connection.execute(sql).to_arrow_reader():
                    pass

        grouped = "SELECT g, count(*), min(n), max(d) FROM t GROUP BY g"
        yield Database("duckdb", "DuckDB", "DuckDB", {"duckdb_open": file}, alone, grouped)


@contextmanager
def in_sqlite() -> Iterator[Database]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "t.db"
        sqlite_files.run(file, *_SQLITE)

        def alone(sql: str) -> None:
            with sqlite.connect(str(file)) as connection, connection.cursor() as cursor:
                cursor.execute(sql)
                for _ in cursor.fetch_record_batch():
                    pass

        grouped = "SELECT g, count(*), min(k), max(d) FROM t GROUP BY g"
        yield Database(
            "sqlite", "SQLite", "ADBC driver", {"sqlite_file": str(file)}, alone, grouped
        )


@contextmanager
def in_mysql() -> Iterator[Database]:
    with mariadb.serving() as server:
        server.execute(f"CREATE TABLE t AS SELECT {_MYSQL} FROM seq_1_to_{ROWS}")

        def alone(sql: str) -> None:
            login = {"user": "root", "database": mariadb.DATABASE, "charset": "utf8mb4"}
            with (
                closing(pymysql.connect(unix_socket=str(server.socket), **login)) as connection,
                connection.cursor(SSCursor) as cursor,
            ):
                cursor.execute(sql)
                while cursor.fetchmany(10_000):
                    pass

        grouped = "SELECT g, count(*), min(n), max(k) FROM t GROUP BY g"
        yield Database("mysql", "MariaDB", "PyMySQL", server.params, alone, grouped)


ALL: tuple[Callable[[], AbstractContextManager[Database]], ...] = (
    in_postgres, in_duckdb, in_sqlite, in_mysql,
)  # fmt: skip
