"""A program that joins a cluster as a scheduler and runs one hash exchange.

`python -m bench.shuffling HOST:PORT NODE_IP TOKEN_FILE MB ROUNDS EXECUTOR=IP EXECUTOR=IP` prints
a line of JSON with the seconds of the exchange, and of Ray alone for the same objects.
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray
from datafusion import SessionContext
from datafusion.catalog import Schema
from datafusion.substrait import Serde
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from substrait.plan_pb2 import Plan

from caraway_core import ray_nodes
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.ids import CatalogVersion, ExecutorId, new_query_id
from caraway_core.protocols import wire
from caraway_core.protocols.fleet import ExchangePart, Input, Split, TableCatalog, Task, TaskOutcome
from caraway_core.settings import Address
from caraway_core.work import SubstraitFragment
from caraway_engine.stages.inputs import INPUT_PREFIX, INPUT_SCHEMA
from caraway_engine.stages.policy import Policy
from caraway_scheduler.dispatch.fleets.joining import RayDriver
from caraway_scheduler.dispatch.fleets.parts import Carried, handles
from caraway_scheduler.dispatch.fleets.ray_fleet import RayFleet

_ORIGIN = "bench"
_FACTOR = 64
_ROW_BYTES = 152
_NUMBERS = [f"n{number}" for number in range(11)]
_SCHEMA = pa.schema([*((name, pa.int64()) for name in _NUMBERS), ("comment", pa.string())])
_FACTORS = pa.schema([("turn", pa.int64())])


@dataclass(slots=True)
class Shuffled:
    """The best of all rounds."""

    size_bytes: int = 0
    moved_bytes: int = 0
    seconds: float = float("inf")
    parting_seconds: float = float("inf")
    ray_seconds: float = float("inf")


class _Holder:
    """An actor that fetches objects and does nothing with them."""

    def hold(self, *tables: pa.Table) -> int:
        return sum(table.num_rows for table in tables)


async def shuffle(
    fleet: RayFleet, ips: dict[ExecutorId, str], size_mb: int, rounds: int
) -> Shuffled:
    """Create rows on each executor, partition them by hash and count them; then use Ray alone."""
    for executor_id in ips:
        await fleet.install(executor_id, TableCatalog(CatalogVersion(1), _ORIGIN, {}))
    holders = {executor_id: _holder(ip) for executor_id, ip in ips.items()}
    made = [
        await _make(fleet, executor_id, number, size_mb * 10**6 // len(ips))
        for number, executor_id in enumerate(ips)
    ]
    best = Shuffled(sum(part.size_bytes for part in made))
    for _ in range(rounds):
        began_s = time.perf_counter()
        partitions = await _part(fleet, made, len(ips))
        parted_s = time.perf_counter()
        await _count(fleet, partitions, list(ips))
        ended_s = time.perf_counter()
        best.seconds = min(best.seconds, ended_s - began_s)
        best.parting_seconds = min(best.parting_seconds, parted_s - began_s)
        best.moved_bytes = _moved(partitions, list(ips))
        del partitions
        gc.collect()
        partitions = await _part(fleet, made, len(ips))
        began_s = time.perf_counter()
        await _hold(holders, partitions)
        best.ray_seconds = min(best.ray_seconds, time.perf_counter() - began_s)
        del partitions
        gc.collect()
    return best


async def reach(fleet: RayFleet, executor_ids: set[ExecutorId]) -> None:
    """Wait until the fleet has found all executors; a heartbeat alone may find none yet."""
    retries = Backoff(Delays(0.1, 1.0))
    while True:
        found = {each.executor_id for each in await fleet.describe()}
        if executor_ids <= found:
            return
        await asyncio.sleep(retries.failed())


async def _make(
    fleet: RayFleet, executor_id: ExecutorId, number: int, size_bytes: int
) -> ExchangePart:
    count = size_bytes // _ROW_BYTES // _FACTOR
    seed = pa.array(range(number * count, (number + 1) * count), pa.int64())
    text = pa.array([f"{'of carefully regular packages ' * 2}{row % 997:04}" for row in
                     range(count)])  # fmt: skip
    rows = pa.table([*[seed] * len(_NUMBERS), text], schema=_SCHEMA)
    turns = pa.table([list(range(_FACTOR))], schema=_FACTORS)
    key = f"{_NUMBERS[0]} * {_FACTOR} + turn"
    sql = f"SELECT {key}, {', '.join(_SCHEMA.names[1:])} FROM {_input('seed')}, {_input('turns')}"
    plan = _plan(sql, seed=_SCHEMA, turns=_FACTORS)
    inputs = [_put(executor_id, "seed", rows), _put(executor_id, "turns", turns)]
    outcome = await fleet.run_task(executor_id, _task(plan, _SCHEMA), inputs)
    return outcome.parts[0]


async def _part(
    fleet: RayFleet, made: Sequence[ExchangePart], executors: int
) -> Sequence[TaskOutcome]:
    count = Policy().partitions(sum(part.size_bytes for part in made), executors, 4 * 2**30)
    plan = _plan(f"SELECT * FROM {_input('made')}", made=_SCHEMA)
    task = _task(plan, _SCHEMA, Split((0,), count))
    return await asyncio.gather(
        *(
            fleet.run_task(part.executor_id, task, [Input(INPUT_PREFIX + "made", _SCHEMA, (part,))])
            for part in made
        )
    )


async def _count(
    fleet: RayFleet, partitions: Sequence[TaskOutcome], executors: Sequence[ExecutorId]
) -> None:
    plan = _plan(f"SELECT count(*), max(n1) FROM {_input('parted')}", parted=_SCHEMA)
    counts = pa.schema([("rows", pa.int64()), ("most", pa.int64())])
    await asyncio.gather(
        *(
            fleet.run_task(
                executors[number % len(executors)],
                _task(plan, counts),
                [Input(INPUT_PREFIX + "parted", _SCHEMA, parts)],
            )
            for number, parts in enumerate(_by_number(partitions))
        )
    )


async def _hold(holders: dict[ExecutorId, Any], partitions: Sequence[TaskOutcome]) -> None:
    actors = list(holders.values())
    asked = [
        actors[number % len(actors)].hold.remote(*handles([Input("", _SCHEMA, parts)]))
        for number, parts in enumerate(_by_number(partitions))
    ]
    await asyncio.gather(*asked)


def _by_number(partitions: Sequence[TaskOutcome]) -> list[tuple[ExchangePart, ...]]:
    return list(zip(*(outcome.parts for outcome in partitions), strict=True))


def _moved(partitions: Sequence[TaskOutcome], executors: Sequence[ExecutorId]) -> int:
    return sum(
        part.size_bytes
        for number, parts in enumerate(_by_number(partitions))
        for part in parts
        if part.executor_id != executors[number % len(executors)]
    )


# Any: Ray's handles have no types.
def _holder(ip: str) -> Any:
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    node = next(node["NodeID"] for node in nodes if node["NodeManagerAddress"] == ip)
    strategy = NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(_Holder).options(num_cpus=0, scheduling_strategy=strategy).remote()


def _put(executor_id: ExecutorId, name: str, rows: pa.Table) -> Input:
    packed = Carried(wire.pack_table(rows))
    part = ExchangePart(packed, executor_id, rows.num_rows, rows.nbytes)
    return Input(INPUT_PREFIX + name, rows.schema, (part,))


def _task(plan: bytes, schema: pa.Schema, split: Split | None = None) -> Task:
    named = pa.schema([field.with_name(f"c{n}") for n, field in enumerate(schema)])
    return Task(
        new_query_id(),
        "bench",
        _ORIGIN,
        CatalogVersion(1),
        SubstraitFragment(plan),
        named,
        split=split,
    )


def _plan(sql: str, **inputs: pa.Schema) -> bytes:
    context = SessionContext()
    context.catalog().register_schema(INPUT_SCHEMA, Schema.memory_schema())
    for name, schema in inputs.items():
        empty = pa.RecordBatch.from_pylist([], schema=schema)
        context.register_record_batches(_input(name), [[empty]])
    plan, bare = Plan(), Plan()
    plan.ParseFromString(Serde.serialize_bytes(sql, context))
    bare.CopyFrom(plan)
    # The plan of a task has no root relation with column names, unlike that of a statement.
    bare.relations[0].rel.CopyFrom(plan.relations[0].root.input)
    return bytes(bare.SerializeToString())


def _input(name: str) -> str:
    return f'{INPUT_SCHEMA}."{INPUT_PREFIX}{name}"'


async def main(arguments: list[str]) -> None:
    head, node_ip, token_file, size_mb, rounds, *executors = arguments
    host, port = head.rsplit(":", 1)
    ips = {ExecutorId(name): ip for name, ip in (each.split("=") for each in executors)}
    variables = ray_nodes.environment(Path(token_file))
    token = ray_nodes.read_token(Path(token_file))
    fleet = RayFleet(token, RayDriver(Address(host, int(port)), node_ip, variables))
    await fleet.join()
    try:
        await reach(fleet, set(ips))
        found = await shuffle(fleet, ips, int(size_mb), int(rounds))
        print(json.dumps(asdict(found)), flush=True)
    finally:
        await fleet.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
