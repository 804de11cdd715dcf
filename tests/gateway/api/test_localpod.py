"""Datasets over other datasets of the same runtime."""

from pathlib import Path

from tests.gateway.api.view_files import write
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

MANIFEST = """
    datasets:
      - {from: 'localpod:sales.orders', name: plain}
      - {from: 'localpod:plain', name: twice}
      - from: localpod:twice
        name: kept
        acceleration: {enabled: true, primary_key: id}
      - {from: 'file:orders.parquet', name: sales.orders}
    views:
      - {name: above, sql: SELECT max(id) AS m FROM plain}
"""
BROKEN = """
    datasets:
      - {from: 'localpod:none', name: a}
      - {from: 'localpod:c', name: b}
      - {from: 'localpod:b', name: c}
      - {from: 'localpod:d', name: d}
      - {from: 'localpod:', name: e}
      - {from: 'localpod:x', name: f, columns: [{name: id, type: int}]}
"""


async def rows(runtime: Running, sql: str) -> object:
    async def look() -> object:
        answer = await runtime.sql(sql)
        return answer.json() if answer.status_code == 200 else None

    return await eventually(look, f"{sql} is answered")


async def test_a_dataset_has_the_rows_of_another_one(tmp_path: Path) -> None:
    write(tmp_path, 100)
    async with running(tmp_path, MANIFEST) as runtime:
        assert await rows(runtime, "SELECT v FROM plain WHERE id = 7") == [{"v": "v2"}]
        assert await rows(runtime, "SELECT count(*) AS n FROM twice") == [{"n": 100}]
        assert await rows(runtime, "SELECT count(*) AS n FROM kept") == [{"n": 100}]
        assert await rows(runtime, "SELECT m FROM above") == [{"m": 99}]
        write(tmp_path, 10)
        sql = "SELECT (SELECT count(*) FROM plain) AS a, (SELECT count(*) FROM kept) AS b"

        async def fresh() -> bool:
            return bool((await runtime.sql(sql)).json() == [{"a": 10, "b": 100}])

        assert await eventually(fresh, "new rows of the file are read")
        await runtime.api.post("/v1/datasets/kept/acceleration/refresh")

        async def refreshed() -> bool:
            return bool((await runtime.sql(sql)).json() == [{"a": 10, "b": 10}])

        assert await eventually(refreshed, "the copy is loaded again")


async def test_its_lineage_is_that_of_a_view(tmp_path: Path) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, MANIFEST) as runtime:
        await rows(runtime, "SELECT count(*) AS n FROM kept")
        found = (await runtime.api.get("/v1/datasets/plain/details")).json()
        assert (found["reads"], found["read_by"]) == (["sales.orders"], ["above", "twice"])


async def test_what_it_cannot_read_is_said(tmp_path: Path) -> None:
    async with running(tmp_path, BROKEN) as runtime:

        async def look() -> dict[str, str] | None:
            told = (await runtime.api.get("/v1/datasets?status=true")).json()
            errors = {each["name"]: str(each["error_message"] or "") for each in told}
            return errors if all(errors.values()) else None

        errors = await eventually(look, "all datasets have failed")
        assert errors is not None
        assert "table 'none' not found" in errors["a"]
        assert all("it reads itself" in errors[name] for name in "bcd")
        assert len(errors["b"]) < 200
        assert "the name of a dataset" in errors["e"] and "leave the types out" in errors["f"]
