"""Statements that pass through an accelerated dataset to its source, in one runtime."""

import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_acceleration import service
from tests.gateway.api.accelerating import at_version, manifest, refresh, write
from tests.gateway.api.change_manifests import KEYS, TAKING
from tests.kit.deadlines import eventually
from tests.kit.runtime import running

HOUR_S = 3600


async def test_inserted_rows_are_in_the_source_and_read_at_once(tmp_path: Path) -> None:
    async with running(tmp_path, TAKING + KEYS) as runtime:
        writer, reader = {"x-api-key": "writer"}, {"x-api-key": "reader"}
        runtime.api.headers.update(writer)
        await at_version(runtime, 1)
        for number in range(3):
            made = await runtime.sql(f"INSERT INTO orders VALUES ({number}, 'v'), (10, 'w')")
            assert made.status_code == 200, made.text
            assert made.json() == [{"count": 2}]
            found = await runtime.sql("SELECT count(*) AS n FROM orders")
            assert found.json() == [{"n": 2 * (number + 1)}]
        note = "INSERT INTO others\nDml: op=[Insert Into] table=[x]"
        for sql in (
            f"/* why */ INSERT /* how */ INTO caraway.public.\"orders\" VALUES (7, '{note}')",
            "INSERT INTO orders (v) SELECT v || '!' FROM orders WHERE id = 7",
        ):
            made = await runtime.sql(sql)
            assert (made.status_code, made.json()) == (200, [{"count": 1}]), made.text
        found = await runtime.sql("SELECT id, v FROM orders WHERE id = 7 OR id IS NULL ORDER BY v")
        assert found.json() == [{"id": 7, "v": note}, {"id": None, "v": f"{note}!"}]
        assert await runtime.own("SELECT count(*) AS n FROM caraway_source.orders") == [{"n": 8}]
        shown = await runtime.sql("SELECT 'INSERT INTO orders VALUES (1)' AS a")
        assert shown.json() == [{"a": "INSERT INTO orders VALUES (1)"}]
        explained = await runtime.sql("EXPLAIN INSERT INTO orders VALUES (1, 'x')")
        assert explained.status_code == 400, explained.text
        refused = await runtime.sql("INSERT INTO orders VALUES (9, 'x')", **reader)
        assert refused.status_code == 403, refused.text


async def test_a_job_inserts_through_the_dataset_too(tmp_path: Path) -> None:
    async with running(tmp_path, TAKING + KEYS) as runtime:
        runtime.api.headers.update({"x-api-key": "writer"})
        await at_version(runtime, 1)
        sql = "INSERT INTO orders VALUES (1, 'a')"
        made = await runtime.api.post("/v1/queries", json={"sql": sql})
        assert made.status_code == 202, made.text
        url = f"/v1/queries/{made.json()['query_id']}?wait=60"
        done = (await runtime.api.get(url)).json()
        while done["status"] in ("PENDING", "RUNNING"):
            done = (await runtime.api.get(url)).json()
        assert done["status"] == "SUCCEEDED", done
        found = await runtime.sql("SELECT v FROM orders")
        assert found.json() == [{"v": "a"}]


async def test_the_source_answers_if_the_dataset_has_no_rows(tmp_path: Path) -> None:
    write(tmp_path, 100)
    keys = ("refresh_sql: SELECT * FROM orders WHERE id < 10", "on_zero_results: use_source")
    views = """
        views:
          - {name: late, sql: "SELECT id FROM orders WHERE id > 4"}
"""
    async with running(tmp_path, manifest(*keys) + views) as runtime:
        await at_version(runtime, 1)
        held = await runtime.sql("SELECT count(*) AS n FROM orders")
        assert held.json() == [{"n": 10}]
        for sql, rows in (
            ("SELECT id FROM orders WHERE id = 3", [{"id": 3}]),
            ("SELECT id FROM orders WHERE id = 42", [{"id": 42}]),
            ("WITH a AS (SELECT 42 AS b) SELECT id FROM orders JOIN a ON id = b", [{"id": 42}]),
            ("SELECT id FROM orders WHERE id = 420", []),
            ("SELECT id FROM public.orders WHERE id = 42", [{"id": 42}]),
            ("SELECT a.id FROM (SELECT * FROM orders AS x) AS a WHERE id = 42", [{"id": 42}]),
            ("SELECT 1 AS b WHERE EXISTS (SELECT 1 FROM orders WHERE id = 42)", [{"b": 1}]),
            ("SELECT id FROM late WHERE id = 42", [{"id": 42}]),
            ("WITH orders AS (SELECT 1 AS a WHERE false) SELECT * FROM orders", []),
            (
                "WITH late AS (SELECT id FROM orders) SELECT id FROM late WHERE id = 42",
                [{"id": 42}],
            ),
            ("SELECT 1 AS orders WHERE 'orders' = 'late'", []),
            (
                "SELECT id FROM orders WHERE id = 42 AND 'orders' <> '\nTableScan: orders'",
                [{"id": 42}],
            ),
        ):
            found = await runtime.sql(sql)
            assert (found.status_code, found.json()) == (200, rows), sql


class _Later(datetime):
    """The date two hours from now."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "_Later":
        return super().now(tz) + timedelta(hours=2)


async def test_expired_rows_are_removed_between_refreshes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = (
        "retention_check_enabled: true",
        "retention_period: 1h",
        "retention_check_interval: 200ms",
    )
    now = int(time.time())
    rows = {"id": range(3), "t": [now - 2 * HOUR_S, now, now + 2 * HOUR_S]}
    pq.write_table(pa.table(rows), tmp_path / "orders.parquet")
    async with running(tmp_path, manifest(*keys)) as runtime:
        assert (await at_version(runtime, 1))["version"]["rows"] == 2
        monkeypatch.setattr(service, "datetime", _Later)

        async def look() -> bool:
            return bool((await runtime.sql("SELECT id FROM orders")).json() == [{"id": 2}])

        await eventually(look, "the row that has become too old is gone")
        assert (await at_version(runtime, 2))["version"]["rows"] == 1


async def test_appends_keep_what_is_stored(tmp_path: Path) -> None:
    write(tmp_path, 1000)
    async with running(tmp_path, manifest("refresh_mode: append")) as runtime:
        await at_version(runtime, 1)
        stored = {path.name for path in (tmp_path / "data-dir").rglob("*.arrow")}
        for number in range(2, 5):
            write(tmp_path, 10, 1000 * number, f"orders{number}.parquet")
            (tmp_path / "orders.parquet").unlink()
            (tmp_path / f"orders{number}.parquet").rename(tmp_path / "orders.parquet")
            await refresh(runtime)
            told = await at_version(runtime, number)
            assert told["version"]["rows"] == 1000 + 10 * (number - 1)
        now = {path.name for path in (tmp_path / "data-dir").rglob("*.arrow")}
        assert stored < now
        found = await runtime.sql("SELECT count(*) AS n, max(id) AS last FROM orders")
        assert found.json() == [{"n": 1030, "last": 4009}]


async def test_inserted_rows_become_a_file_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    pq.write_table(pa.table({"id": [1], "v": ["a"]}), tmp_path / "lake" / "a.parquet")
    text = """
        datasets:
          - from: file:lake/
            name: orders
            access: read_write
            params: {file_format: parquet}
            acceleration: {enabled: true, engine: file}
    """
    async with running(tmp_path, text + KEYS) as runtime:
        runtime.api.headers.update({"x-api-key": "writer"})
        await at_version(runtime, 1)
        made = await runtime.sql("INSERT INTO orders SELECT id + 1, 'b' FROM orders")
        assert (made.status_code, made.json()) == (200, [{"count": 1}])
        found = await runtime.sql("SELECT id, v FROM orders ORDER BY id")
        assert found.json() == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
    assert len(list((tmp_path / "lake").glob("*.parquet"))) > 1
