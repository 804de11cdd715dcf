"""Accelerated datasets from the manifest to the rows, in one runtime with real stores."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.gateway.api.accelerating import (
    FIRST,
    at_version,
    count,
    manifest,
    refresh,
    standing,
    write,
)
from tests.kit.deadlines import eventually
from tests.kit.runtime import running


async def test_rows_are_loaded_once_and_again_on_request(tmp_path: Path) -> None:
    write(tmp_path, 1000)
    async with running(tmp_path, manifest()) as runtime:
        told = await at_version(runtime, 1)
        assert (told["status"], told["version"]["rows"]) == ("ready", 1000)
        assert await count(runtime) == 1000
        (tmp_path / "orders.parquet").unlink()
        assert await count(runtime) == 1000
        write(tmp_path, 1500)
        assert await count(runtime) == 1000
        await refresh(runtime, refresh_sql=None, refresh_mode=None, refresh_jitter_max=None)
        await at_version(runtime, 2)
        assert await count(runtime) == 1500
        listed = (await runtime.api.get("/v1/datasets?status=true")).json()[0]
        assert (listed["acceleration_enabled"], listed["status"]) == (True, "ready")


async def test_the_lag_is_the_age_of_the_version(tmp_path: Path) -> None:
    write(tmp_path, 10)
    hourly = manifest("refresh_check_interval: 1h")
    plain = "\n          - {from: 'file:orders.parquet', name: plain}\n"
    async with running(tmp_path, hourly.rstrip() + plain) as runtime:
        told = await at_version(runtime, 1)
        lag = told["lag"]
        assert datetime.fromisoformat(lag["last_change_at"]) == datetime.fromisoformat(
            told["version"]["made_at"]
        )
        assert lag["is_late"] is False and 0 <= lag["behind_ms"] < 3_600_000
        listed = (await runtime.api.get("/v1/datasets?status=true")).json()
        lags = {each["name"]: each["lag"] for each in listed}
        assert lags["orders"]["behind_ms"] >= lag["behind_ms"] and lags["plain"] is None
        assert "lag" not in (await runtime.api.get("/v1/datasets")).json()[0]


async def test_history_and_metrics_include_refreshes(tmp_path: Path) -> None:
    write(tmp_path, 1000)
    async with running(tmp_path, manifest()) as runtime:
        await at_version(runtime, 1)
        sql = (
            "SELECT input, error_message FROM runtime.task_history "
            "WHERE task = 'accelerated_refresh'"
        )

        async def told() -> list[Any]:
            return list((await runtime.sql(sql)).json())

        (row,) = await eventually(told, "the refresh is in the history")
        assert row == {"input": "orders: full", "error_message": None}
        page = (await runtime.metrics.get("/metrics")).text
        assert 'dataset_acceleration_rows{dataset="orders"} 1000.0' in page


async def test_cached_answers_match_the_current_version(tmp_path: Path) -> None:
    write(tmp_path, 10)
    more = "\n        runtime:\n          caching: {sql_results: {item_ttl: 1h}}\n"
    async with running(tmp_path, manifest() + more) as runtime:
        await at_version(runtime, 1)
        assert await count(runtime) == await count(runtime) == 10
        write(tmp_path, 20)
        await refresh(runtime)
        await at_version(runtime, 2)
        assert await count(runtime) == 20


async def test_refresh_sql_chooses_rows_and_columns(tmp_path: Path) -> None:
    write(tmp_path, 100)
    sql = "refresh_sql: SELECT id, v FROM orders WHERE v = 'v1'"
    async with running(tmp_path, manifest(sql)) as runtime:
        await at_version(runtime, 1)
        answer = await runtime.sql("SELECT * FROM orders ORDER BY id LIMIT 1")
        assert answer.json() == [{"id": 1, "v": "v1"}]
        assert await count(runtime) == 20
        changed = await runtime.api.patch(
            "/v1/datasets/orders/acceleration", json={"refresh_sql": "SELECT * FROM orders"}
        )
        assert (changed.status_code, "refresh_sql" in changed.json()["message"]) == (200, True)
        await refresh(runtime)
        await at_version(runtime, 2)
        assert await count(runtime) == 100
        await refresh(runtime, refresh_sql="SELECT * FROM orders WHERE id < 7")
        await at_version(runtime, 3)
        assert await count(runtime) == 7
        await runtime.api.patch("/v1/datasets/orders/acceleration", json={"refresh_sql": None})
        await refresh(runtime)
        await at_version(runtime, 4)
        assert await count(runtime) == 100, "null leaves the statement that was set"


async def test_unknown_settings_are_refused(tmp_path: Path) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, manifest()) as runtime:
        await at_version(runtime, 1)
        path = "/v1/datasets/orders/acceleration"
        for body in ({"refresh_sqll": "SELECT 1"}, {"refresh_sql": None, "enabled": False}):
            refused = await runtime.api.patch(path, json=body)
            assert refused.status_code == 400, refused.text
            assert "known: refresh_sql" in refused.json()["message"].lower()
        documented = (await runtime.api.get("/openapi.json")).json()["paths"]
        answers = documented["/v1/datasets/{name}/acceleration"]["patch"]["responses"]
        assert answers["200"]["content"]["application/json"]["schema"]["$ref"].endswith("Message")


async def test_append_loads_newer_rows(tmp_path: Path) -> None:
    write(tmp_path, 100)
    async with running(tmp_path, manifest("refresh_mode: append")) as runtime:
        await at_version(runtime, 1)
        write(tmp_path, 50, start=100)
        await refresh(runtime)
        await at_version(runtime, 2)
        assert await count(runtime) == 150
        await refresh(runtime)
        await at_version(runtime, 3)
        assert await count(runtime) == 150
        answer = await runtime.sql("SELECT count(DISTINCT id) AS n FROM orders")
        assert answer.json() == [{"n": 150}]


@pytest.mark.parametrize("key", ["", "primary_key: id"])
async def test_append_with_an_overlap_takes_late_rows_once(tmp_path: Path, key: str) -> None:
    write(tmp_path, 100)
    lines = ("refresh_mode: append", "refresh_append_overlap: 20s", *([key] if key else []))
    async with running(tmp_path, manifest(*lines)) as runtime:
        await at_version(runtime, 1)
        # The last rows again with changes, and new ones.
        ids = list(range(75, 120))
        late = pa.table({"id": ids, "t": [FIRST + each for each in ids], "v": ["new"] * 45})
        pq.write_table(late, tmp_path / "orders.parquet")
        await refresh(runtime)
        await at_version(runtime, 2)
        assert await count(runtime) == 120
        assert await count(runtime, "v = 'new'") == 41


async def test_window_and_retention_look_at_the_time_column(tmp_path: Path) -> None:
    write(tmp_path, 100)
    sql = f"retention_sql: DELETE FROM orders WHERE t < {FIRST + 10} OR v = 'v2'"
    async with running(tmp_path, manifest("retention_check_enabled: true", sql)) as runtime:
        await at_version(runtime, 1)
        assert await count(runtime) == 72
    async with running(tmp_path, manifest("refresh_data_window: 1h")) as runtime:
        told = await at_version(runtime, 2)
        assert told["version"]["rows"] == 0
        assert await count(runtime) == 0


async def test_sort_by_orders_what_is_stored(tmp_path: Path) -> None:
    write(tmp_path, 1000)
    async with running(tmp_path, manifest("sort_by: [v, id]")) as runtime:
        await at_version(runtime, 1)
        answer = await runtime.sql("SELECT v FROM orders LIMIT 3")
        assert answer.json() == [{"v": "v0"}] * 3


async def test_failed_refresh_leaves_the_rows_and_says_why(tmp_path: Path) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, manifest()) as runtime:
        await at_version(runtime, 1)
        (tmp_path / "orders.parquet").write_bytes(b"broken")
        await refresh(runtime)

        async def told() -> str:
            return str((await standing(runtime)).get("error", ""))

        assert "is damaged" in await eventually(told, "the failure is told")
        assert (await standing(runtime))["status"] == "ready"
        assert await count(runtime) == 10
        write(tmp_path, 20)
        await refresh(runtime)
        await at_version(runtime, 2)
        assert "error" not in await standing(runtime)


async def test_schema_of_the_source_may_change_between_versions(tmp_path: Path) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, manifest()) as runtime:
        await at_version(runtime, 1)
        pq.write_table(pa.table({"other": ["a", "b"]}), tmp_path / "orders.parquet")

        async def seen() -> bool:
            await refresh(runtime)
            answer = await runtime.sql("SELECT other FROM orders")
            return bool(answer.status_code == 200)

        await eventually(seen, "the new column is read")
        assert (await runtime.sql("SELECT count(*) AS n FROM orders")).json() == [{"n": 2}]


async def test_restart_reopens_files_without_the_source(tmp_path: Path) -> None:
    write(tmp_path, 100)
    lines = ("engine: file", "mode: file")
    async with running(tmp_path, manifest(*lines)) as runtime:
        await at_version(runtime, 1)
    (tmp_path / "orders.parquet").unlink()
    async with running(tmp_path, manifest(*lines)) as runtime:
        assert (await at_version(runtime, 1))["status"] == "ready"
        assert await count(runtime) == 100
        assert (await runtime.api.get("/v1/ready")).text == "ready"
    async with running(tmp_path, manifest(*lines, "sort_by: id")) as runtime:
        # Another acceleration must not use the rows of this one.
        assert "version" not in await standing(runtime)
        assert (await runtime.api.get("/v1/ready")).status_code == 503


async def test_memory_mode_loads_again_at_the_start(tmp_path: Path) -> None:
    write(tmp_path, 100)
    async with running(tmp_path, manifest()) as runtime:
        await at_version(runtime, 1)
    write(tmp_path, 200)
    async with running(tmp_path, manifest()) as runtime:
        await at_version(runtime, 2)
        assert await count(runtime) == 200


async def test_interval_refreshes_by_itself(tmp_path: Path) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, manifest("refresh_check_interval: 100ms")) as runtime:
        await at_version(runtime, 1)
        write(tmp_path, 20)
        await at_version(runtime, 3)

        async def fresh() -> bool:
            return bool(await count(runtime) == 20)

        await eventually(fresh, "the new rows are read")


async def test_source_answers_until_loaded_if_configured(tmp_path: Path) -> None:
    write(tmp_path, 10)
    text = manifest("refresh_mode: disabled", more="ready_state: on_registration")
    async with running(tmp_path, text) as runtime:
        assert await count(runtime) == 10
        assert "version" not in await standing(runtime)


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("nowhere/acceleration/refresh", "{}", 404, "no dataset 'nowhere'"),
        ("plain/acceleration/refresh", "{}", 400, "not accelerated"),
        ("orders/acceleration/refresh", "{", 400, "not JSON"),
        ("orders/acceleration/refresh", "[]", 400, "JSON object"),
        ("orders/acceleration/refresh", '{"refresh_mode": "changes"}', 400, "loads nothing"),
        ("orders/acceleration/refresh", '{"refresh_sql": "SELECT 1"}', 400, "FROM"),
        ("orders/acceleration/refresh", '{"refresh_sql": 7}', 400, "string"),
        ("orders/acceleration/refresh", '{"refresh_jitter_max": "x"}', 400, "jitter"),
        ("orders/acceleration/refresh", '{"refresh_sql": "SELECT * FROM plain"}', 400, "plain"),
        ("not a name/acceleration/refresh", "{}", 404, "not a table name"),
    ],
)
async def test_impossible_refreshes_are_rejected(
    tmp_path: Path, path: str, body: str, status: int, words: str
) -> None:
    write(tmp_path, 10)
    plain = "          - {from: 'file:orders.parquet', name: plain}\n"
    text = manifest().rstrip(" ") + plain
    async with running(tmp_path, text) as runtime:
        await at_version(runtime, 1)
        got = await runtime.api.post(f"/v1/datasets/{path}", content=body)
        assert got.status_code == status
        assert words in got.json()["message"]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("refresh_cron: '99 * * * *'", "minute"),
        ("refresh_sql: SELECT * FROM elsewhere", "elsewhere"),
    ],
)
async def test_settings_that_only_the_scheduler_checks_are_dataset_errors(
    tmp_path: Path, keys: str, words: str
) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, manifest(keys)) as runtime:
        (listed,) = (await runtime.api.get("/v1/datasets?status=true")).json()
        assert listed["status"] == "error"
        assert words in listed["error_message"]
        assert (await runtime.api.get("/v1/ready")).status_code == 503


async def test_old_versions_are_removed_but_not_at_once(tmp_path: Path) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, manifest()) as runtime:
        await at_version(runtime, 1)
        for number in (2, 3):
            await refresh(runtime)
            await at_version(runtime, number)
        kept = [each.name for each in (tmp_path / "data-dir/results/datasets").glob("d-*")]
        assert len(kept) == 3, "statements may still read them"
