"""Datasets over other datasets of the same runtime."""

from pathlib import Path

from caraway_gateway.composition.backend import Backend
from tests.gateway.api.failing_refreshes import failed
from tests.gateway.api.view_files import write
from tests.kit.clusters import EAGER, in_process_cluster
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
FOLLOWING = """
    datasets:
      - {from: 'file:orders.parquet', name: orders, acceleration: {enabled: true}}
      - {from: 'localpod:orders', name: plain}
      - {from: 'localpod:plain', name: copy, acceleration: {enabled: true}}
      - from: localpod:copy
        name: recent
        acceleration: {refresh_sql: SELECT * FROM recent WHERE id > 3}
      - from: localpod:orders
        name: timed
        acceleration: {refresh_check_interval: 1h}
"""
LOGGED = """
    datasets:
      - from: memory:orders
        name: orders
        access: read_write
        columns: [{name: id, type: bigint}, {name: v, type: text}]
        acceleration: {enabled: true, primary_key: id}
      - {from: 'localpod:orders', name: copy, acceleration: {enabled: true}}
    runtime:
      auth: {api-key: {keys: ["writer:rw"]}}
"""
COUNTS = """
    SELECT (SELECT count(*) FROM orders) AS a, (SELECT count(*) FROM copy) AS b,
      (SELECT count(*) FROM recent) AS c, (SELECT count(*) FROM timed) AS d
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


async def counted(runtime: Running, *expected: int) -> None:
    async def look() -> bool:
        answer = await runtime.sql(COUNTS)
        return answer.status_code == 200 and list(answer.json()[0].values()) == list(expected)

    assert await eventually(look, f"the datasets have {expected} rows")


async def refresh(runtime: Running, name: str) -> None:
    answer = await runtime.api.post(f"/v1/datasets/{name}/acceleration/refresh")
    assert answer.status_code == 201, answer.text


async def test_copies_are_refreshed_with_the_dataset_that_they_copy(tmp_path: Path) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, FOLLOWING) as runtime:
        await check_copies(runtime, tmp_path)


async def test_copies_on_executors_are_refreshed_with_the_dataset(tmp_path: Path) -> None:
    write(tmp_path, 10)
    apart = tmp_path / "cluster"
    apart.mkdir()
    async with (
        in_process_cluster(apart, {}, executors=2, policy=EAGER) as cluster,
        running(tmp_path, FOLLOWING, backend=Backend(cluster.dispatch)) as runtime,
    ):
        await check_copies(runtime, tmp_path)


async def check_copies(runtime: Running, tmp_path: Path) -> None:
    """Refresh a dataset, also when that fails, and see what the copies have."""
    await counted(runtime, 10, 10, 6, 10)
    write(tmp_path, 20)
    await refresh(runtime, "orders")
    await counted(runtime, 20, 20, 16, 10)  # One with a schedule waits for it.
    (tmp_path / "orders.parquet").write_bytes(b"PAR1")
    await refresh(runtime, "orders")
    assert await failed(runtime)
    await counted(runtime, 20, 20, 16, 10)
    write(tmp_path, 30)
    await refresh(runtime, "orders")
    await counted(runtime, 30, 30, 26, 10)
    await refresh(runtime, "timed")
    await counted(runtime, 30, 30, 26, 30)


async def test_a_copy_has_the_changes_of_the_dataset_that_it_copies(tmp_path: Path) -> None:
    async with running(tmp_path, LOGGED) as runtime:
        runtime.api.headers.update({"x-api-key": "writer"})
        await rows(runtime, "SELECT count(*) FROM copy")

        async def written(sql: str) -> None:
            answer = await runtime.sql(sql)
            assert answer.status_code == 200, answer.text

        async def is_the_same() -> bool:
            both = [await runtime.sql(f"SELECT * FROM {t} ORDER BY id") for t in ("orders", "copy")]
            return bool(both[0].json() == both[1].json() and len(both[0].json()) == 3)

        for number in range(4):
            await written(f"INSERT INTO orders VALUES ({number}, 'v')")
        await written("DELETE FROM orders WHERE id = 2")
        await written("UPDATE orders SET v = 'w' WHERE id = 3")
        assert await eventually(is_the_same, "the copy has the changes")


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
