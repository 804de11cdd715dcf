"""Runtimes with an accelerated dataset over a Parquet file, and its states."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.kit.deadlines import eventually
from tests.kit.runtime import Running

FIRST = 1_700_000_000


def write(folder: Path, rows: int, start: int = 0, file: str = "orders.parquet") -> None:
    ids = list(range(start, start + rows))
    table = pa.table(
        {"id": ids, "t": [FIRST + each for each in ids], "v": [f"v{each % 5}" for each in ids]}
    )
    pq.write_table(table, folder / file)


def manifest(*lines: str, more: str = "") -> str:
    keys = "\n".join(f"              {line}" for line in ("enabled: true", *lines))
    return f"""
        datasets:
          - from: file:orders.parquet
            name: orders
            time_column: t
            time_format: unix_seconds
            {more}
            acceleration:
{keys}
    """


async def standing(runtime: Running, name: str = "orders") -> Mapping[str, Any]:
    got = await runtime.api.get(f"/v1/datasets/{name}/acceleration")
    assert got.status_code == 200, got.text
    told: Mapping[str, Any] = got.json()
    return told


async def at_version(runtime: Running, number: int) -> Mapping[str, Any]:
    async def look() -> Mapping[str, Any] | None:
        told = await standing(runtime)
        is_there = told.get("version", {}).get("number", 0) >= number and "refresh" not in told
        return told if is_there else None

    found = await eventually(look, f"version {number} is read")
    assert found is not None
    return found


async def refresh(runtime: Running, **body: object) -> None:
    got = await runtime.api.post("/v1/datasets/orders/acceleration/refresh", json=body)
    assert got.status_code == 201, got.text
    assert "orders" in got.json()["message"]


async def count(runtime: Running, where: str = "true") -> Any:
    answer = await runtime.sql(f"SELECT count(*) AS n FROM orders WHERE {where}")
    assert answer.status_code == 200, answer.text
    return answer.json()[0]["n"]
