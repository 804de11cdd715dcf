"""Names of datasets in the routes of acceleration."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.runtime import running

NAMED = """
        datasets:
          - from: file:orders.parquet
            name: orders
            acceleration: {enabled: true}
          - from: file:orders.parquet
            name: sales.orders
            acceleration: {enabled: true}
          - from: file:orders.parquet
            name: '"Big"'
            acceleration: {enabled: true}
          - from: file:orders.parquet
            name: plain
"""


@pytest.mark.parametrize(
    ("name", "dataset"),
    [
        ("orders", "orders"), ("public.orders", "orders"), ("ORDERS", "orders"),
        ("caraway.public.orders", "orders"), ("%22public%22.%22orders%22", "orders"),
        ("public%2Eorders", "orders"), ("sales.orders", "sales.orders"),
        ("caraway.sales.orders", "sales.orders"), ("%22caraway%22.SALES.orders", "sales.orders"),
        ("%22Big%22", "Big"), ("public.%22Big%22", "Big"), ("caraway.public.%22Big%22", "Big"),
    ],
)  # fmt: skip
async def test_routes_accept_names_as_statements_do(
    tmp_path: Path, name: str, dataset: str
) -> None:
    pq.write_table(pa.table({"id": [0, 1, 2]}), tmp_path / "orders.parquet")
    async with running(tmp_path, NAMED) as runtime:
        told = await runtime.api.get(f"/v1/datasets/{name}/acceleration")
        assert (told.status_code, told.json()["dataset"]) == (200, dataset)
        path = f"/v1/datasets/{name}/acceleration/refresh"
        refreshed = await runtime.api.post(path, json={})
        assert refreshed.status_code == 201, refreshed.text


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("nothing", 404), ("other.orders", 404), ("a.b.c.d", 404), ("other.public.orders", 404),
        ("caraway_source.orders", 404), ("runtime.orders", 404), ("%22", 404), ("plain", 400),
        ("public.plain", 400), ("Big", 404),
    ],
)  # fmt: skip
async def test_other_names_mean_no_dataset_on_every_route(
    tmp_path: Path, name: str, status: int
) -> None:
    pq.write_table(pa.table({"id": [0, 1, 2]}), tmp_path / "orders.parquet")
    async with running(tmp_path, NAMED) as runtime:
        path = f"/v1/datasets/{name}/acceleration"
        for answer in (
            await runtime.api.get(path),
            await runtime.api.patch(path, json={}),
            await runtime.api.post(f"{path}/refresh", json={}),
        ):
            assert (answer.status_code, list(answer.json())) == (status, ["message"])
        headers = {"content-type": "application/json"}
        path = f"/v1/datasets/{name}/cdc"
        taken = await runtime.api.post(path, content=b"[]", headers=headers)
        assert taken.status_code == 404
