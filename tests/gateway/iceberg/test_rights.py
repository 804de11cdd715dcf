"""A key may see the same tables through the catalog as by SQL."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_gateway.iceberg import scan_runs
from tests.kit import iceberg_reader
from tests.kit.iceberg_plans import scan_tasks
from tests.kit.runtime import Running, running

BASE = "/v1/caraway/namespaces/public/tables"
MANIFEST = """
    runtime: {auth: {api-key: {keys: ['ada:ro', 'bob:rw', 'root:admin']}}}
    datasets: [{from: 'file:rows.csv', name: t}]
    views:
      - {name: v, sql: SELECT a FROM t WHERE a > 1}
      - {name: said, sql: SELECT input FROM runtime.task_history}
"""


def by(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def planned(runtime: Running, name: str, key: str) -> list[Any]:
    found = []
    for task in await scan_tasks(runtime.api, f"{BASE}/{name}", by(key)):
        content = iceberg_reader.local(task["data-file"]["file-path"])
        found += pq.read_table(pa.BufferReader(content)).to_pylist()
    return found


@pytest.mark.parametrize("key", ["ada", "bob", "root"])
async def test_every_key_reads_what_it_reads_by_sql(tmp_path: Path, key: str) -> None:
    (tmp_path / "rows.csv").write_text("a\n1\n2\n")
    async with running(tmp_path, MANIFEST) as runtime:
        for name in ("t", "v"):
            sql = await runtime.api.post(
                "/v1/sql", content=f"SELECT * FROM {name}", headers=by(key)
            )
            assert await planned(runtime, name, key) == sql.json()
        loaded = await runtime.api.get(f"{BASE}/t", headers=by(key))
        assert loaded.status_code == 200
        # Statements of other keys are in tables of the runtime, which the catalog does not have.
        for path, status in (
            ("/v1/caraway/namespaces/runtime", 404),
            ("/v1/caraway/namespaces/runtime/tables/task_history", 404),
            (f"{BASE}/runtime.task_history", 404),
        ):
            lost = await runtime.api.get(path, headers=by(key))
            assert (path, lost.status_code) == (path, status)
        refused = await runtime.api.post(f"{BASE}/said/plan", json={}, headers=by(key))
        assert refused.status_code == 400
        assert "only statements may, views may not" in refused.json()["error"]["message"]
        written = await runtime.api.post(f"{BASE}/t", json={}, headers=by(key))
        assert written.status_code == 406


async def test_keys_do_not_fetch_the_plans_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_runs, "FIRST_S", 0.0)
    (tmp_path / "rows.csv").write_text("a\n1\n")
    async with running(tmp_path, MANIFEST) as runtime:
        answer = (await runtime.api.post(f"{BASE}/t/plan", json={}, headers=by("ada"))).json()
        (token,), plan_id = answer["plan-tasks"], answer["plan-id"]
        for key, status in (("bob", 404), ("root", 404), ("wrong", 401), ("ada", 200)):
            fetched = await runtime.api.post(
                f"{BASE}/t/tasks", json={"plan-task": token}, headers=by(key)
            )
            looked = await runtime.api.get(f"{BASE}/t/plan/{plan_id}", headers=by(key))
            assert (key, fetched.status_code, looked.status_code) == (key, status, status)
        cancelled = await runtime.api.delete(f"{BASE}/t/plan/{plan_id}", headers=by("bob"))
        assert cancelled.status_code == 404
