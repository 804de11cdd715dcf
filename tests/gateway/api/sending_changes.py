"""Sends change events to a runtime, and reads the rows that they made."""

import json
from typing import Any

from tests.kit.deadlines import eventually
from tests.kit.runtime import Running

COLUMNS = "[{name: id, type: bigint}, {name: v, type: text}, {name: n, type: int}]"


def manifest(*lines: str, more: str = "") -> str:
    keys = "\n".join(f"              {line}" for line in ("enabled: true", *lines))
    return f"""
        runtime:
          caching: {{sql_results: {{item_ttl: 1h}}}}
        datasets:
          - from: cdc:orders
            name: orders
            columns: {COLUMNS}
            {more}
            acceleration:
{keys}
    """


KEYED = manifest("primary_key: id")


def row(id_: int, v: str, n: int | None = None) -> dict[str, Any]:
    return {"id": id_, "v": v, "n": n}


def event(op: str, id_: int, v: str = "", lsn: int | None = None) -> dict[str, Any]:
    image = row(id_, v)
    made: dict[str, Any] = {"op": op, "before": None, "after": image}
    if op == "d":
        made = {"op": op, "before": image, "after": None}
    if lsn is not None:
        made["source"] = {"connector": "postgresql", "name": "db", "lsn": lsn}
    return made


async def send(runtime: Running, *events: Any, name: str = "orders", **headers: str) -> Any:
    got = await runtime.api.post(
        f"/v1/datasets/{name}/cdc",
        content=json.dumps(events),
        headers={"content-type": "application/json", **headers},
    )
    assert got.status_code == 200, got.text
    return got.json()["applied"]


async def ready(runtime: Running) -> None:
    async def look() -> bool:
        got = await runtime.api.get("/v1/datasets/orders/acceleration")
        return bool(got.json()["status"] == "ready")

    await eventually(look, "the dataset takes changes")


async def rows(runtime: Running, sql: str = "SELECT id, v FROM orders ORDER BY id") -> Any:
    answer = await runtime.sql(sql)
    assert answer.status_code == 200, answer.text
    return [tuple(each.values()) for each in answer.json()]
