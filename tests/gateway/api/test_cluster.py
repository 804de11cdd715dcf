"""`/v1/cluster/executors` and `runtime.executors` of a standalone runtime, which lists itself."""

import csv
import io
from pathlib import Path

import pytest

from caraway_core.ids import QueryId
from caraway_core.releases.protocol_versions import PROTOCOL_VERSION
from caraway_core.statements import Statement
from caraway_scheduler.membership import listing
from tests.kit.runtime import running

COLUMNS = listing.SCHEMA.names


async def test_standalone_runtime_lists_itself(tmp_path: Path) -> None:
    async with running(
        tmp_path, "runtime: {cpu: {cores: 3}, query: {memory_limit: 1GiB}}\n"
    ) as runtime:
        await runtime.sql("SELECT 1")
        await runtime.sql("SELECT nothing")
        (entry,) = (await runtime.api.get("/v1/cluster/executors")).json()
    assert list(entry) == COLUMNS
    assert (entry["state"], entry["reason"]) == ("ready", None)
    assert (entry["cores"], entry["memory_bytes"]) == (3, 2**30)
    assert (entry["active_tasks"], entry["finished_tasks"], entry["failed_tasks"]) == (0, 1, 1)
    assert (entry["catalog_version"], entry["holds"]) == (1, [])
    assert entry["protocol_version"] == PROTOCOL_VERSION
    assert entry["memory_used_bytes"] > 0


@pytest.mark.parametrize(("query", "headers"), [("?format=csv", {}), ("", {"accept": "text/csv"})])
async def test_listing_as_csv(tmp_path: Path, query: str, headers: dict[str, str]) -> None:
    async with running(tmp_path, "") as runtime:
        response = await runtime.api.get(f"/v1/cluster/executors{query}", headers=headers)
    assert response.headers["content-type"].startswith("text/csv")
    header, row = csv.reader(io.StringIO(response.text))
    assert header == COLUMNS
    assert row[:3] == [runtime.services.dispatch.executors()[0].executor_id, "ready", ""]


async def test_wrong_format_is_400_in_json(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        response = await runtime.api.get("/v1/cluster/executors?format=xml")
    assert response.status_code == 400
    assert "query parameter 'format'" in response.json()["error"]


async def test_table_has_the_fields_of_the_listing(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        (listed,) = (await runtime.api.get("/v1/cluster/executors")).json()
        (row,) = (await runtime.sql("SELECT * FROM runtime.executors")).json()
    assert list(row) == COLUMNS
    fixed = ("executor_id", "state", "address", "cores", "memory_bytes", "build")
    assert [row[name] for name in fixed] == [listed[name] for name in fixed]
    assert row["active_tasks"] == 1  # This statement itself.


async def test_statement_that_is_closed_early_is_no_longer_active(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        rows = await runtime.services.dispatch.execute(QueryId("q"), Statement("SELECT 1", {}))
        await rows.aclose()
        (status,) = runtime.services.dispatch.executors()
    assert (status.active_tasks, status.failed_tasks) == (0, 1)
