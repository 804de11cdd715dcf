"""`/v1/datasets/{name}/details`: lineage, indexes, and what the manifest says."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running
from tests.kit.shared_runtime import entered

MANIFEST = """
    runtime:
      auth: {api-key: {enabled: true, keys: ["ada:rw", "eve:ro", "root:admin"]}}
    datasets:
      - from: file:orders.csv
        name: orders
        description: What was sold
        params: {file_format: csv}
        acceleration: {enabled: true, primary_key: id, indexes: {v: enabled, "(id, v)": unique}}
        columns: [{name: v, full_text_search: {enabled: true, row_id: id}}]
      - {from: 'file:orders.csv', name: sales.plain}
    views:
      - {name: big, sql: SELECT id AS plain FROM orders WHERE id > 1}
      - {name: biggest, sql: SELECT max(plain) AS m FROM big}
      - {name: both, sql: SELECT count(*) AS n FROM big CROSS JOIN sales.plain}
      - name: kept
        sql: SELECT m FROM biggest
        acceleration: {enabled: true}
      - {name: broken, sql: SELECT nothing FROM orders}
"""


@pytest.fixture(scope="module")
def runtime(
    loop_of_module: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("details")
    (folder / "orders.csv").write_text("id,v\n1,a\n2,b\n")
    with entered(loop_of_module, lambda: running(folder, MANIFEST)) as found:
        yield found


async def details(runtime: Running, name: str, key: str = "root") -> Any:
    return await runtime.api.get(f"/v1/datasets/{name}/details", headers={"x-api-key": key})


@pytest.mark.parametrize(
    ("name", "kind", "reads", "read_by"),
    [
        ("orders", "dataset", [], ["big", "broken"]),
        ("sales.plain", "dataset", [], ["both"]),
        # A column of this name is not a table.
        ("big", "view", ["orders"], ["biggest", "both"]),
        ("biggest", "view", ["big"], ["kept"]),
        ("both", "view", ["big", "sales.plain"], []),
        ("kept", "dataset", ["biggest"], []),
        ("broken", "view", ["orders"], []),
    ],
)
async def test_lineage_names_what_is_next_to_a_table(
    runtime: Running, name: str, kind: str, reads: list[str], read_by: list[str]
) -> None:
    async def loaded() -> bool:
        found = (await details(runtime, "kept")).json()
        return bool(found["status"] == "ready")

    await eventually(loaded, "all is loaded")
    found = (await details(runtime, name)).json()
    assert (found["name"], found["kind"]) == (name, kind)
    assert (found["reads"], found["read_by"]) == (reads, read_by)
    assert (found["status"] == "error") == (name == "broken")
    assert (found["sql"] is None) == (not reads)


async def test_indexes_have_their_columns_and_states(runtime: Running) -> None:
    async def loaded() -> Any:
        found = (await details(runtime, "orders")).json()
        return found if found["status"] == "ready" else None

    found = await eventually(loaded, "orders is loaded")
    kinds = {(each["kind"], *each["columns"]): each["state"] for each in found["indexes"]}
    # Nothing builds indexes for searches in this test: the first search does.
    assert kinds == {
        ("primary key", "id"): "ready",
        ("lookup", "v"): "ready",
        ("unique", "id", "v"): "ready",
        ("text", "v"): "waiting",
    }
    assert found["description"] == "What was sold"
    assert (await details(runtime, "sales.plain")).json()["indexes"] == []


async def test_only_admins_see_what_the_manifest_says(runtime: Running) -> None:
    shown = (await details(runtime, "orders")).json()["definition"]
    assert shown["file"] == "caraway.yaml" and "from: file:orders.csv" in shown["text"]
    for key in ("ada", "eve"):
        found = await details(runtime, "orders", key)
        assert found.status_code == 200 and found.json()["definition"] is None
    assert (await details(runtime, "orders", "nobody")).status_code == 401


@pytest.mark.parametrize(
    "name", ["nothing", "a.b.c.d", "%00", "x" * 3_000, "..", "caraway_source.orders", "☃", "'"]
)
async def test_what_is_no_dataset_or_view_is_not_found(runtime: Running, name: str) -> None:
    assert (await details(runtime, name)).status_code == 404
