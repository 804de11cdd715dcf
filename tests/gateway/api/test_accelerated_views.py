"""Accelerated views: loaded by their query, and read like any accelerated dataset."""

from pathlib import Path

from tests.gateway.api.view_files import write
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

MANIFEST = """
    datasets:
      - {from: 'file:orders.parquet', name: orders}
    views:
      - name: totals
        sql: SELECT v, count(*) AS n, sum(id) AS s FROM orders GROUP BY v
        acceleration: {enabled: true, engine: file, primary_key: v}
      - {name: many, sql: SELECT v FROM totals WHERE n > 19}
"""


async def at_version(runtime: Running, number: int) -> None:
    async def look() -> bool:
        got = (await runtime.api.get("/v1/datasets/totals/acceleration")).json()
        return bool(got.get("version", {}).get("number", 0) >= number)

    await eventually(look, f"version {number} is read")


async def test_a_view_is_loaded_kept_and_refreshed(tmp_path: Path) -> None:
    write(tmp_path, 100)
    async with running(tmp_path, MANIFEST) as runtime:
        await at_version(runtime, 1)
        found = await runtime.sql("SELECT n, s FROM totals WHERE v = 'v3'")
        assert found.json() == [{"n": 20, "s": sum(range(3, 100, 5))}]
        many = await runtime.sql("SELECT count(*) AS c FROM many")
        assert many.json() == [{"c": 5}]
        write(tmp_path, 10)
        kept = await runtime.sql("SELECT sum(n) AS n FROM totals")
        assert kept.json() == [{"n": 100}]
        await runtime.api.post("/v1/datasets/totals/acceleration/refresh")
        await at_version(runtime, 2)
        fresh = await runtime.sql("SELECT sum(n) AS n FROM totals")
        assert fresh.json() == [{"n": 10}]


async def test_a_view_that_cannot_be_planned_says_why(tmp_path: Path) -> None:
    write(tmp_path, 10)
    text = MANIFEST.replace("sum(id)", "sum(nothing)")
    async with running(tmp_path, text) as runtime:

        async def look() -> str:
            got = await runtime.api.get("/v1/datasets/totals/acceleration")
            return str(got.json().get("error") or "")

        assert "nothing" in await eventually(look, "the view has failed")
