"""Scans that the server plans: files of tables, and rows that are exported for one scan."""

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_gateway.iceberg import scan_runs, sweeping
from tests.kit import iceberg_reader
from tests.kit.deadlines import eventually
from tests.kit.iceberg_plans import scan_tasks
from tests.kit.runtime import Running

BASE = "/v1/caraway/namespaces/public/tables"
DEAR = {"type": "gt", "term": "fare", "value": 2.5}


async def plan(runtime: Running, table: str, **body: Any) -> list[dict[str, Any]]:
    return await scan_tasks(runtime.api, f"{BASE}/{table}", **body)


def rows(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for task in tasks:
        file = task["data-file"]
        content = iceberg_reader.local(file["file-path"])
        table = pq.read_table(pa.BufferReader(content))
        assert len(content) == file["file-size-in-bytes"]
        assert table.num_rows == file["record-count"]
        found += table.to_pylist()
    return found


async def test_rows_of_any_source_are_exported_for_a_scan(runtime: Running) -> None:
    assert rows(await plan(runtime, "people")) == [{"id": 1, "name": "Ann"}]
    assert rows(await plan(runtime, "people", select=["name"])) == [{"name": "Ann"}]
    found = sorted(rows(await plan(runtime, "dear")), key=lambda row: str(row["city"]))
    assert found == (await runtime.sql("SELECT * FROM dear ORDER BY city")).json()
    (odd,) = rows(await plan(runtime, "odd"))
    assert odd == {"a": Decimal(1)}
    none = {"type": "eq", "term": "id", "value": 2}
    assert await plan(runtime, "people", filter=none) == []


async def test_a_scan_has_the_columns_and_rows_that_it_asks_for(runtime: Running) -> None:
    wanted = {"type": "and", "left": {"type": "eq", "term": "city", "value": "New York"},
              "right": {"type": "gt-eq", "term": "n", "value": 1}}  # fmt: skip
    (task,) = await plan(runtime, "dear", select=["n"], filter=wanted)
    assert task["residual-filter"] == wanted
    assert rows([task]) == [{"city": "New York", "n": 1}]
    folded = await plan(runtime, "dear", select=["N"], **{"case-sensitive": False})
    assert set(rows(folded)[0]) == {"n"}


async def test_files_of_a_table_are_not_copied(runtime: Running) -> None:
    tasks = await plan(runtime, "trips", filter=DEAR)
    metadata = (await runtime.api.get(f"{BASE}/trips")).json()["metadata"]
    files = {each["file_path"]: each for each in iceberg_reader.data_files(metadata)}
    assert {each["data-file"]["file-path"] for each in tasks} == set(files)
    for each in tasks:
        file = files[each["data-file"]["file-path"]]
        assert each["data-file"]["partition"] == list(file["partition"].values())
        assert each["residual-filter"] == DEAR


async def test_partitions_of_null_are_exported(runtime: Running) -> None:
    tasks = await plan(runtime, "lost", select=["id", "city"])
    assert all(not each["data-file"]["partition"] for each in tasks)
    assert sorted(row["id"] for row in rows(tasks)) == [1, 2]
    assert {row["city"] for row in rows(tasks)} == {None, "Bern"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"select": ["none"]}, "there is no column 'none'"),
        ({"select": "name"}, "'select' must be a list of names"),
        ({"select": ["id"], "filter": {"type": "eq", "term": "none", "value": 1}}, "no column"),
        ({"filter": {"type": "like"}}, "unknown type: like"),
        ({"start-snapshot-id": 1, "end-snapshot-id": 2}, "scans of changes are not served"),
        ([], "must be a JSON object"),
    ],
)
async def test_wrong_requests_are_refused(runtime: Running, body: Any, words: str) -> None:
    response = await runtime.api.post(f"{BASE}/people/plan", json=body)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["type"] == "BadRequestException"
    assert words in response.json()["error"]["message"]


async def test_tables_that_cannot_be_read_say_why(runtime: Running) -> None:
    for path, status in [(f"{BASE}/none/plan", 404), (f"{BASE}/broken/plan", 503),
                         ("/v1/other/namespaces/public/tables/people/plan", 404)]:  # fmt: skip
        response = await runtime.api.post(path, json={})
        assert (path, response.status_code) == (path, status)
        assert response.json()["error"]["code"] == status
    text = await runtime.api.post(f"{BASE}/people/plan", content=b"no JSON")
    assert text.status_code == 400


async def test_long_scans_are_given_out_in_parts(
    runtime: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_runs, "FIRST_S", 0.0)
    response = await runtime.api.post(f"{BASE}/people/plan", json={})
    answers = [response.json()]
    while tokens := answers[-1].get("plan-tasks"):
        (token,) = tokens
        response = await runtime.api.post(f"{BASE}/people/tasks", json={"plan-task": token})
        assert response.status_code == 200, response.text
        answers.append(response.json())
    assert rows([task for each in answers for task in each["file-scan-tasks"]]) == [
        {"id": 1, "name": "Ann"}
    ]
    asked = await runtime.api.post(
        f"{BASE}/people/plan", json={}, headers={"prefer": "respond-async"}
    )
    path = f"{BASE}/people/plan/{asked.json()['plan-id']}"
    assert asked.json()["status"] == "submitted"

    async def completed() -> dict[str, Any] | None:
        found: dict[str, Any] = (await runtime.api.get(path)).json()
        return found if found["status"] == "completed" and "plan-tasks" not in found else None

    found = await eventually(completed, "the plan is complete")
    assert found is not None and len(rows(found["file-scan-tasks"])) == 1
    assert (await runtime.api.delete(path)).status_code == 204
    assert (await runtime.api.get(path)).json() == {"status": "cancelled"}
    for method, of in (("GET", "plan/none"), ("DELETE", "plan/none"), ("GET", "plan/%2e%2e")):
        lost = await runtime.api.request(method, f"{BASE}/people/{of}")
        assert (lost.status_code, lost.json()["error"]["type"]) == (404, "NoSuchPlanIdException")
    for body in ({"plan-task": "none"}, {}):
        lost = await runtime.api.post(f"{BASE}/people/tasks", json=body)
        assert (lost.status_code, lost.json()["error"]["type"]) == (404, "NoSuchPlanTaskException")


async def test_filters_of_every_size_are_answered(runtime: Running) -> None:
    def of(kind: str, term: str, value: Any) -> dict[str, Any]:
        return {"type": kind, "term": term, "value": value}

    chain, alternating = of("eq", "id", 1), of("eq", "id", 1)
    for number in range(55):
        chain = {"type": "or", "left": chain, "right": of("eq", "id", number)}
        kind = "and" if number % 2 else "or"
        alternating = {"type": kind, "left": of("lt", "id", 9), "right": alternating}
    balanced = of("eq", "id", 1)
    for _ in range(8):
        balanced = {"type": "or", "left": balanced, "right": balanced}
    for wanted in (
        chain,
        alternating,
        balanced,
        {"type": "in", "term": "id", "values": list(range(50_000))},
        {"type": "in", "term": "id", "values": list(range(15_000))},
        of("eq", "name", "Ann" + "x" * 500_000),
        of("not-eq", "name", "\0'\""),
        of("eq", "id", 10**30),
    ):
        body = json.dumps({"filter": wanted})
        response = await runtime.api.post(f"{BASE}/people/plan", content=body)
        assert response.status_code == 200, (str(wanted)[:80], response.text[:300])
    long = of("eq", "name", "x" * 2_000_000)
    refused = await runtime.api.post(f"{BASE}/people/plan", json={"filter": long})
    assert refused.status_code == 400
    assert "'filter' is too long" in refused.json()["error"]["message"]
    twice = await plan(runtime, "people", select=["name", "name"])
    assert rows(twice) == [{"name": "Ann"}]


async def test_plans_that_nobody_reads_are_deleted(
    runtime: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = await plan(runtime, "people")
    tables = runtime.services.tables
    await tables.sweep()
    assert rows(tasks)
    monkeypatch.setattr(sweeping, "KEPT_S", -1.0)
    await tables.sweep()
    with pytest.raises(FileNotFoundError):
        rows(tasks)


async def test_tables_without_files_have_what_planned_scans_need(runtime: Running) -> None:
    document = (await runtime.api.get(f"{BASE}/people")).json()
    assert "let the server plan the scan" in document["metadata"]["properties"]["caraway.rows"]
    mapping = document["metadata"]["properties"]["schema.name-mapping.default"]
    assert [each["names"] for each in json.loads(mapping)] == [["id"], ["name"]]
    listed = (await runtime.api.get("/v1/config")).json()["endpoints"]
    assert "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan" in listed
