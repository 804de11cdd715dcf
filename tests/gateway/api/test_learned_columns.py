"""Datasets of changes that declare no columns, from the first event to a restart."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.kit.deadlines import eventually
from tests.kit.kafka import brokers
from tests.kit.runtime import Running, running

PUSHED = """
    datasets:
      - {from: cdc:orders, name: orders, acceleration: {primary_key: id}}
    views:
      - {name: notes, sql: SELECT note FROM orders}
"""
FOLLOWED = """
    datasets:
      - from: debezium:orders
        name: orders
        params: {kafka_bootstrap_servers: "${env:SERVERS}"}
        acceleration: {primary_key: id}
"""


def event(op: str, id_: int, **more: Any) -> dict[str, Any]:
    image = {"id": id_, **more}
    return {"op": op, "before": image if op == "d" else None, "after": image}


async def send(runtime: Running, *events: Any) -> Any:
    return await runtime.api.post("/v1/datasets/orders/cdc", json=list(events))


async def taken(runtime: Running, *events: Any) -> None:
    async def is_taken() -> bool:
        return bool((await send(runtime, *events)).status_code == 200)

    await eventually(is_taken, "the events are taken")


async def holds(runtime: Running, *rows: dict[str, Any]) -> None:
    async def look() -> bool:
        answer = await runtime.sql("SELECT * FROM orders ORDER BY id")
        return bool(answer.status_code == 200 and answer.json() == list(rows))

    await eventually(look, f"the dataset has {rows}")


async def reason(runtime: Running) -> str:
    async def look() -> str:
        (listed, *_) = (await runtime.api.get("/v1/datasets?status=true")).json()
        return json.dumps(listed) if listed["status"] == "error" else ""

    return str(await eventually(look, "the dataset says why it is not ready"))


async def test_the_first_events_give_the_columns_over_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path, PUSHED) as runtime:
        assert "they come from its first events" in await reason(runtime)
        assert (await runtime.api.get("/v1/ready")).status_code == 503
        assert (await runtime.sql("SELECT * FROM orders")).status_code == 503
        await taken(runtime, {"op": "d", "before": {"id": 9}, "after": None})
        assert (await runtime.sql("SELECT * FROM orders")).status_code == 503
        answer = await send(runtime, event("c", 1, note="one", n=1.5), event("c", 2, note=None))
        assert (answer.status_code, answer.json()["applied"]) == (200, 2)
        one, two = {"id": 1, "note": "one", "n": 1.5}, {"id": 2, "note": None, "n": None}
        await holds(runtime, one, two)

        async def is_ready() -> bool:
            return (await runtime.api.get("/v1/ready")).status_code == 200

        await eventually(is_ready, "the runtime is ready")
        answer = await runtime.sql("SELECT note FROM notes WHERE note IS NOT NULL")
        assert answer.json() == [{"note": "one"}]
    async with running(tmp_path, PUSHED) as runtime:
        await holds(runtime, one, two)
        await taken(runtime, event("u", 2, note="dos"), event("d", 1))
        await holds(runtime, {"id": 2, "note": "dos", "n": None})
        for bad, said in ((event("c", 3, x=1), "column 'x'"), (event("c", 3, n="x"), "column 'n'")):
            refused = await send(runtime, event("c", 4), bad)
            assert refused.status_code == 400
            assert said in refused.text and "give the dataset another name" in refused.text
        await holds(runtime, {"id": 2, "note": "dos", "n": None})


async def test_first_events_that_disagree_are_not_lost_silently(tmp_path: Path) -> None:
    async with running(tmp_path, PUSHED) as runtime:
        await reason(runtime)
        await taken(runtime, {"op": "t"})
        answers = await asyncio.gather(
            *(send(runtime, event("c", number, **{f"c{number}": 1})) for number in range(4))
        )
        statuses = sorted(each.status_code for each in answers)
        assert statuses[0] == 200 and statuses.count(200) == 1
        assert set(statuses[1:]) <= {400, 503}
        (won,) = [number for number, each in enumerate(answers) if each.status_code == 200]
        await holds(runtime, {"id": won, f"c{won}": 1})


async def test_a_topic_gives_the_columns_over_a_restart(tmp_path: Path) -> None:
    with brokers() as cluster:
        environ = {"SERVERS": cluster.servers}
        cluster.send("orders", None)
        async with running(tmp_path, FOLLOWED, environ) as runtime:
            assert "they come from its first events" in await reason(runtime)
            cluster.send(
                "orders", event("d", 7), event("c", 1, note="one"), event("c", 2, note="two")
            )
            await holds(runtime, {"id": 1, "note": "one"}, {"id": 2, "note": "two"})
        cluster.send("orders", event("d", 1, note="one"), event("c", 3, note=None))
        async with running(tmp_path, FOLLOWED, environ) as runtime:
            await holds(runtime, {"id": 2, "note": "two"}, {"id": 3, "note": None})
            cluster.send("orders", event("c", 4, other=1))

            async def says() -> bool:
                got = await runtime.api.get("/v1/datasets/orders/acceleration")
                return "column 'other' is not in the dataset" in got.text

            await eventually(says, "the new column is reported")
            await holds(runtime, {"id": 2, "note": "two"}, {"id": 3, "note": None})
