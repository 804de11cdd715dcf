"""Tables with names of three parts on a real cluster: two executors read and join them."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import yaml

from tests.kit import duckdb_files, mariadb, postgres, sqlite_files
from tests.kit.deadlines import until
from tests.kit.fault_clusters import Served
from tests.kit.mariadb import Mariadb
from tests.kit.ray_cluster import ray_cluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
EXECUTORS = 2
COUNT = 3_000
WEIRD = "Order; DROP TABLE x; --'"
ROWS = f"SELECT n, n % 7 AS k FROM generate_series(1, {COUNT}) AS s(n)"
EACH = [n % 7 for n in range(1, COUNT + 1)]


@dataclass(frozen=True, slots=True)
class Running:
    served: Served
    postgres: postgres.Server
    mysql: Mariadb

    def rows(self, sql: str) -> list[dict[str, object]]:
        return list(self.served.ask(sql).rows)  # type: ignore[arg-type] # mappings of JSON


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("c")
    with ExitStack() as stack:
        pg = stack.enter_context(postgres.serving())
        my = stack.enter_context(mariadb.serving())
        pg.execute(
            f'CREATE TABLE "{WEIRD}" AS {ROWS}',
            "CREATE TABLE names AS SELECT k, 'name ' || k AS name FROM generate_series(0, 6) s(k)",
            "CREATE TABLE kept (id serial PRIMARY KEY, k bigint)",
        )
        my.execute(
            "CREATE DATABASE `Shop 2`",
            f"CREATE TABLE `Shop 2`.`order` AS SELECT seq AS n, seq % 7 AS k FROM seq_1_to_{COUNT}",
        )
        duckdb_files.run(folder / "d.duckdb", f"CREATE TABLE t AS {ROWS}")
        sqlite_files.run(
            folder / "s.db",
            "CREATE TABLE t (n INTEGER PRIMARY KEY, k INTEGER)",
            "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 3000) "
            "INSERT INTO t SELECT n, n % 7 FROM s",
        )
        manifest = _manifest(folder, pg, my)
        of = stack.enter_context(ray_cluster(folder, EXECUTORS))
        process = of.begin_scheduler("s1", manifest).wait_up()
        served = Served(f"http://{process.facts['http']}")
        served.until_ready(EXECUTORS)
        yield Running(served, pg, my)


def _manifest(folder: Path, pg: postgres.Server, my: Mariadb) -> Path:
    document = {
        "version": "v1",
        "kind": "Caraway",
        "name": "catalogs",
        "runtime": {"scheduler": {"state_location": "results"}},
        "catalogs": [
            {"from": "postgres", "name": "pg", "params": pg.params, "access": "read_write_create"},
            {"from": "mysql", "name": "my", "params": {**my.params, "mysql_db": ""}},
            {"from": "duckdb", "name": "du", "params": {"duckdb_open": "d.duckdb"}},
            {"from": "sqlite", "name": "sq", "params": {"sqlite_file": "s.db"}},
        ],
        "datasets": [
            {"from": "postgres:public.kept", "name": "kept", "access": "read_write",
             "params": pg.params},
        ],
    }  # fmt: skip
    path = folder / "caraway.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


TABLES = [f'pg.public."{WEIRD}"', 'my."Shop 2"."order"', "du.main.t", "sq.main.t"]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_each_catalog_is_read(running: Running, table: str) -> None:
    sql = f"SELECT k, count(*) AS n FROM {table} GROUP BY k ORDER BY k"
    assert running.rows(sql) == [{"k": k, "n": EACH.count(k)} for k in range(7)]


def test_tables_of_all_catalogs_are_joined(running: Running) -> None:
    a, b, c, d = TABLES
    sql = (
        f"SELECT x.name, count(*) AS n FROM {a} a JOIN {b} b ON a.n = b.n JOIN {c} c ON b.n = c.n "
        f"JOIN {d} d ON c.n = d.n JOIN pg.public.names x ON x.k = a.k GROUP BY 1 ORDER BY 1"
    )
    expected = [{"name": f"name {k}", "n": EACH.count(k)} for k in range(7)]
    assert running.rows(sql) == expected


def test_a_job_reads_them(running: Running) -> None:
    url = f"{running.served.url}/v1/queries"
    sql = f"SELECT count(*) AS n FROM {TABLES[0]} a JOIN {TABLES[1]} b ON a.n = b.n"
    query = httpx.post(url, json={"sql": sql}, timeout=60).json()["query_id"]

    def status() -> str:
        return str(httpx.get(f"{url}/{query}/status?wait=5", timeout=60).json()["status"])

    until(lambda: status() not in ("PENDING", "RUNNING"), "the job ended", 120)
    found = httpx.get(f"{url}/{query}", timeout=60).json()
    assert found["result"]["data_array"] == [{"n": COUNT}]


def test_a_new_table_is_found_and_a_changed_one_is_read_anew(running: Running) -> None:
    running.mysql.execute("CREATE TABLE `Shop 2`.fresh AS SELECT 1 AS a")
    assert running.rows('SELECT * FROM my."Shop 2".fresh') == [{"a": 1}]
    answer = running.served.ask('SELECT * FROM my."Shop 2".fresher')
    assert answer.status == 400 and "did you mean" in answer.error


def test_rows_are_inserted_by_one_executor(running: Running) -> None:
    sql = f"INSERT INTO kept (k) SELECT n FROM {TABLES[1]}"
    assert running.rows(sql) == [{"count": COUNT}]
    assert running.rows("SELECT count(*) AS n, count(DISTINCT id) AS d, sum(k) AS s FROM kept") == [
        {"n": COUNT, "d": COUNT, "s": COUNT * (COUNT + 1) // 2}
    ]
    answer = running.served.ask(
        f"INSERT INTO kept (id, k) SELECT n + {COUNT // 2}, 1 FROM {TABLES[1]}"
    )
    assert answer.status == 400 and "no row was inserted" in answer.error
    assert running.rows("SELECT count(*) AS n FROM kept") == [{"n": COUNT}]


def test_rows_are_changed_by_one_executor(running: Running) -> None:
    running.rows(f"INSERT INTO kept (k) SELECT n FROM {TABLES[1]} WHERE n <= 50")
    (before,) = running.rows("SELECT count(*) AS n FROM kept WHERE k BETWEEN 1 AND 10")
    assert isinstance(before["n"], int) and before["n"] >= 10
    changed = running.rows("UPDATE kept SET k = k - 100000 WHERE k BETWEEN 1 AND 10")
    assert changed == [{"count": before["n"]}]
    assert running.rows("DELETE FROM kept WHERE k < 0") == [{"count": before["n"]}]
    assert running.rows("SELECT count(*) AS n FROM kept WHERE k < 11") == [{"n": 0}]
    answer = running.served.ask("DELETE FROM kept WHERE sqrt(k) > 2")
    assert answer.status == 400 and "its database may take its condition" in answer.error


def test_a_table_is_created_by_one_executor(running: Running) -> None:
    sql = f"CREATE TABLE pg.public.made AS SELECT a.n, b.k FROM {TABLES[2]} a JOIN {TABLES[1]} b "
    assert running.rows(f"{sql} ON a.n = b.n") == [{"count": COUNT}]
    assert running.rows("SELECT count(*) AS n, sum(k) AS k FROM pg.public.made") == [
        {"n": COUNT, "k": sum(EACH)}
    ]
    answer = running.served.ask(
        "CREATE TABLE pg.public.failed AS SELECT 1 / (k - 6) FROM du.main.t"
    )
    assert answer.status == 400
    assert running.rows("DROP TABLE pg.public.made") == [{"count": 0}]
    for name in ("made", "failed"):
        assert running.served.ask(f"SELECT * FROM pg.public.{name}").status == 400


def test_rows_are_merged_by_one_executor(running: Running) -> None:
    running.rows("CREATE TABLE pg.public.merged (n BIGINT PRIMARY KEY, k BIGINT NOT NULL)")
    merge = (
        "MERGE INTO pg.public.merged AS t USING (SELECT n, k FROM du.main.t WHERE n <= {}) AS s "
        "ON t.n = s.n WHEN MATCHED THEN UPDATE SET k = -1 "
        "WHEN NOT MATCHED THEN INSERT (n, k) VALUES (s.n, s.k)"
    )
    assert running.rows(merge.format(10)) == [{"count": 10}]
    assert running.rows(merge.format(30)) == [{"count": 30}]
    assert running.rows(
        "SELECT count(*) AS n, count(*) FILTER (WHERE k = -1) AS old FROM pg.public.merged"
    ) == [{"n": 30, "old": 10}]
