"""Changes from the request to query results, in one runtime with real stores."""

import asyncio
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from caraway_acceleration.refresh import plans
from caraway_acceleration.upkeep import compaction
from caraway_core.errors import CarawayError, UnavailableError
from caraway_core.ids import TableName
from caraway_gateway.services import Services
from tests.gateway.api.accelerating import write as write_orders
from tests.gateway.api.sending_changes import (
    KEYED,
    event,
    manifest,
    ready,
    rows,
    send,
)
from tests.kit.deadlines import eventually
from tests.kit.runtime import running


async def test_changes_are_read_by_the_next_statement(tmp_path: Path) -> None:
    async with running(tmp_path, KEYED) as runtime:
        await ready(runtime)
        assert await rows(runtime) == []
        assert await send(runtime, event("c", 1, "a"), event("c", 2, "b")) == 2
        assert await rows(runtime) == [(1, "a"), (2, "b")]
        await send(runtime, event("u", 1, "A"), event("d", 2), event("r", 3, "c"))
        assert await rows(runtime) == [(1, "A"), (3, "c")]
        assert await rows(runtime, "SELECT v FROM orders WHERE id = 3") == [("c",)]
        await send(runtime, {"op": "t"})
        assert await rows(runtime) == []


async def test_the_lag_of_changes_that_producers_send_is_not_known(tmp_path: Path) -> None:
    async with running(tmp_path, KEYED) as runtime:
        await ready(runtime)
        before = datetime.now(UTC)
        await send(runtime, event("c", 1, "a"))
        lag = (await runtime.api.get("/v1/datasets/orders/acceleration")).json()["lag"]
        assert (lag["behind_ms"], lag["is_late"]) == (None, False)
        changed_at = datetime.fromisoformat(lag["last_change_at"])
        assert changed_at >= before.replace(microsecond=before.microsecond // 1_000 * 1_000)


async def test_a_producer_may_try_again_while_the_runtime_starts(tmp_path: Path) -> None:
    refused: list[CarawayError] = []

    def ask(services: Services) -> None:
        with pytest.raises(CarawayError) as raised:
            services.accelerations.target(TableName("orders"))
        refused.append(raised.value)

    async with running(tmp_path, KEYED, before=ask) as runtime:
        assert [type(each) for each in refused] == [UnavailableError]

        async def is_accepted() -> bool:
            answer = await runtime.api.post("/v1/datasets/orders/cdc", json=event("c", 1))
            return answer.status_code == 200

        await eventually(is_accepted, "the events are accepted")
        answer = await runtime.api.post("/v1/datasets/others/cdc", json=event("c", 1))
        assert answer.status_code == 404


async def test_a_dataset_whose_acceleration_failed_is_not_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("a setting is invalid")

    monkeypatch.setattr(plans, "plan_of", fail)
    async with running(tmp_path, KEYED) as runtime:
        answer = await runtime.api.post("/v1/datasets/orders/cdc", json=event("c", 1))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert "a setting is invalid" in answer.json()["message"]


async def test_the_log_is_reported(tmp_path: Path) -> None:
    async with running(tmp_path, KEYED) as runtime:
        await ready(runtime)
        await send(runtime, event("c", 1, "a"), event("c", 2, "b"))
        await send(runtime, event("d", 2, "b"))
        told = (await runtime.api.get("/v1/datasets/orders/acceleration")).json()
        assert told["changes"] == {"log_entries": 2, "log_rows": 3, "waiting": 0}
        assert told["version"]["rows"] == 1
        page = (await runtime.metrics.get("/metrics")).text
        for line in ("applied_total", "log_rows"):
            assert f'dataset_changes_{line}{{dataset="orders"}} 3.0' in page


async def test_acknowledged_changes_survive_the_process(tmp_path: Path) -> None:
    async with running(tmp_path, KEYED) as runtime:
        await ready(runtime)
        await send(runtime, event("c", 1, "a"), event("c", 2, "b"))
        await send(runtime, event("d", 1))
    async with running(tmp_path, KEYED) as runtime:
        await ready(runtime)
        assert await rows(runtime) == [(2, "b")]
        await send(runtime, event("u", 2, "B"))
        assert await rows(runtime) == [(2, "B")]


async def test_late_and_repeated_changes_change_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, KEYED) as runtime:
        await ready(runtime)
        batch = [event("c", 1, "a", 10), event("u", 1, "b", 20), event("c", 2, "x", 21)]
        await send(runtime, *batch)
        await send(runtime, event("u", 1, "c", 30), event("d", 2, "x", 31))
        assert await send(runtime, *batch) == 3
        assert await rows(runtime) == [(1, "c")]
        await send(runtime, event("u", 1, "late", 25))
        assert await rows(runtime) == [(1, "c")]


async def test_rows_before_a_truncation_stay_deleted_after_a_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "LEAST_LOGGED", 3)
    async with running(tmp_path, KEYED) as runtime:
        await ready(runtime)
        emptied = {"op": "t", "source": event("c", 0, "", 20)["source"]}
        first = [event("c", number, "a", number) for number in range(1, 9)]
        await send(runtime, *first, emptied, event("c", 9, "b", 21))

        async def look() -> bool:
            found = await rows(runtime, "SELECT sum(rows) FROM runtime.partitions")
            return bool(found == [(1,)])

        await eventually(look, "the log is part of the base")
        await send(runtime, *(event("c", number, "late", number) for number in range(1, 9)))
        assert await rows(runtime) == [(9, "b")]
        await send(runtime, event("c", 3, "late", 3), event("c", 4, "new", 30))
        assert await rows(runtime) == [(4, "new"), (9, "b")]


async def test_views_and_joins_read_one_state(tmp_path: Path) -> None:
    views = "\n        views:\n          - {name: doubled, sql: 'SELECT id * 2 AS d FROM orders'}\n"
    async with running(tmp_path, KEYED + views) as runtime:
        await ready(runtime)
        for number in range(1, 6):
            await send(runtime, event("c", number, "x"))
            assert await rows(runtime, "SELECT count(*), max(d) FROM doubled") == [
                (number, 2 * number)
            ]
            both = (
                "SELECT count(*) FROM orders a JOIN orders b ON a.id = b.id "
                "JOIN doubled ON d = a.id * 2"
            )
            assert await rows(runtime, both) == [(number,)]


async def test_a_dataset_without_a_key_takes_rows_and_refuses_the_rest(tmp_path: Path) -> None:
    async with running(tmp_path, manifest()) as runtime:
        await ready(runtime)
        await send(runtime, event("c", 1, "a"), event("c", 1, "a"))
        assert await rows(runtime) == [(1, "a"), (1, "a")]
        got = await runtime.api.post("/v1/datasets/orders/cdc", json=event("d", 1, "a"))
        assert got.status_code == 400
        assert "primary_key" in got.json()["message"]


async def test_existing_rows_may_be_kept(tmp_path: Path) -> None:
    text = manifest("primary_key: id", "on_conflict: {id: drop}")
    async with running(tmp_path, text) as runtime:
        await ready(runtime)
        await send(runtime, event("c", 1, "first"))
        await send(runtime, event("c", 1, "second"), event("c", 2, "b"))
        assert await rows(runtime) == [(1, "first"), (2, "b")]


async def test_many_producers_and_readers_meet_no_mixture(tmp_path: Path) -> None:
    """Each request moves the same amount between two rows, so their sum is constant."""
    async with running(tmp_path, KEYED) as runtime:
        await ready(runtime)
        await send(runtime, event("c", 1, "100"), event("c", 2, "100"))
        done = asyncio.Event()

        async def produce(seed: int) -> None:
            chosen = random.Random(seed)
            for _ in range(30):
                amount = chosen.randrange(100)
                await send(
                    runtime, event("u", 1, str(100 - amount)), event("u", 2, str(100 + amount))
                )

        async def read() -> int:
            count = 0
            while not done.is_set():
                found = await rows(runtime, "SELECT sum(CAST(v AS INT)) AS s FROM orders")
                assert found == [(200,)]
                count += 1
            return count

        reading = [asyncio.ensure_future(read()) for _ in range(2)]
        await asyncio.gather(*(produce(seed) for seed in range(3)))
        done.set()
        assert all(count > 3 for count in await asyncio.gather(*reading))


@pytest.mark.parametrize("seed", range(3))
async def test_ingest_is_a_dictionary(tmp_path: Path, seed: int, monkeypatch: Any) -> None:
    """Random batches with compactions and restarts in between, compared with a dictionary."""
    monkeypatch.setattr(compaction, "LEAST_LOGGED", 60)
    chosen, model, lsn = random.Random(seed), dict[int, str](), 0
    for _ in range(3):
        async with running(tmp_path, KEYED) as runtime:
            await ready(runtime)
            for _ in range(12):
                batch, before = [], dict(model)
                for _ in range(chosen.randrange(1, 12)):
                    lsn += 1
                    key, value = chosen.randrange(30), f"v{lsn}"
                    op = chosen.choice("cuud") if chosen.random() > 0.01 else "t"
                    if op == "t":
                        model.clear()
                        batch.append({"op": "t", "source": event("c", 0, "", lsn)["source"]})
                    elif op == "d":
                        model.pop(key, None)
                        batch.append(event("d", key, before.get(key, ""), lsn))
                    else:
                        model[key] = value
                        batch.append(event(op, key, value, lsn))
                await send(runtime, *batch)
                if chosen.random() < 0.3:
                    await send(runtime, *batch)  # Like a client that received no answer.
                assert await rows(runtime) == sorted(model.items())


async def test_partitions_are_listed(tmp_path: Path) -> None:
    async with running(
        tmp_path, manifest("primary_key: id", "partition_by: ['bucket(4, id)']")
    ) as runtime:
        await ready(runtime)
        sql = (
            "SELECT dataset, partition, executors, rows FROM runtime.partitions ORDER BY partition"
        )
        found = (await runtime.sql(sql)).json()
        assert [(each["dataset"], each["partition"]) for each in found] == [
            ("orders", f"[{number}]") for number in range(4)
        ]
        assert all(len(each["executors"]) == 1 for each in found), found


async def test_partitions_by_column_and_expression_are_read_where_they_match(
    tmp_path: Path,
) -> None:
    """For a dataset that is loaded rather than changed."""
    write_orders(tmp_path, 1000)
    text = """
        datasets:
          - from: file:orders.parquet
            name: orders
            acceleration:
              enabled: true
              partition_by: [v, "id % 2 = 0"]
    """
    async with running(tmp_path, text) as runtime:

        async def look() -> bool:
            got = await runtime.api.get("/v1/datasets/orders/acceleration")
            return "version" in got.json()

        await eventually(look, "the dataset is loaded")
        listed = await rows(runtime, "SELECT count(*), sum(rows) FROM runtime.partitions")
        assert listed == [(10, 1000)]
        assert await rows(runtime, "SELECT count(*) FROM orders WHERE v = 'v3'") == [(200,)]
        assert await rows(runtime, "SELECT * FROM orders WHERE id = 7") == [
            (7, 1_700_000_007, "v2")
        ]
