import asyncio

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutorLostError, InvalidQueryError, PartLostError
from caraway_core.ids import ExecutorId, new_query_id
from caraway_core.protocols.fleet import Input
from caraway_core.statements import Statement
from caraway_core.tables import MemoryTable
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.stages.inputs import INPUT_PREFIX
from tests.kit.fragments import task
from tests.kit.in_process_fleet import InProcessFleet
from tests.kit.workers import catalog

ONE, TWO = ExecutorId("e1"), ExecutorId("e2")
NUMBERS = pa.schema([("v", pa.int64())])
DIGESTS = 10
SLOW = f"SELECT sum(length({'md5(' * DIGESTS}arrow_cast(v, 'Utf8'){')' * DIGESTS})) AS s FROM t"


async def fleet(rows: int = 4) -> InProcessFleet:
    made = InProcessFleet([ONE, TWO], EngineSettings(2))
    # The engine looks for cancellation after some batches, so that small ones end work soon.
    batches = pa.table({"v": pa.arange(0, rows)}).to_batches(max_chunksize=1000)
    table = MemoryTable(NUMBERS, pa.Table.from_batches(batches))
    for each in (ONE, TWO):
        assert await made.install(each, catalog({"t": table})) == {}
    return made


async def test_parts_of_one_executor_are_read_by_another() -> None:
    of = await fleet()
    first = await of.run_task(ONE, task("SELECT v FROM t WHERE v < 2", {"t": NUMBERS}), ())
    second = await of.run_task(TWO, task("SELECT v FROM t WHERE v >= 2", {"t": NUMBERS}), ())
    schema = pa.schema([("c0", pa.int64())])
    both = Input(INPUT_PREFIX + "x", schema, first.parts + second.parts)
    stream = await of.stream(ONE, task("SELECT sum(c0) AS s FROM $x", {"$x": schema}), [both])
    assert [batch.column(0).to_pylist() async for batch in stream] == [[6]]
    assert [part.rows for part in both.parts] == [2, 2]
    await of.aclose()


async def test_whole_statements_run_and_fail_with_their_own_error() -> None:
    of = await fleet()
    stream = await of.execute(ONE, new_query_id(), Statement("SELECT v FROM t", {}), "here")
    assert stream.reads_only_catalog
    assert [batch.column(0).to_pylist() async for batch in stream] == [[0, 1, 2, 3]]
    with pytest.raises(InvalidQueryError, match="table 'gone' not found"):
        await of.execute(ONE, new_query_id(), Statement("SELECT * FROM gone", {}), "here")
    await of.probe(ONE)
    await of.aclose()


async def test_lost_executor_fails_its_calls_and_loses_its_parts() -> None:
    of = await fleet(2_000_000)
    made = await of.run_task(ONE, task("SELECT v FROM t", {"t": NUMBERS}), ())
    running = asyncio.ensure_future(of.run_task(ONE, task(SLOW, {"t": NUMBERS}), ()))
    await asyncio.wait((running,), timeout=0.1)
    await of.lose(ONE)
    with pytest.raises(ExecutorLostError, match="'e1'"):
        await running
    with pytest.raises(ExecutorLostError):
        await of.probe(ONE)
    schema = pa.schema([("c0", pa.int64())])
    read = task("SELECT count(*) AS n FROM $x", {"$x": schema})
    with pytest.raises(PartLostError) as caught:
        await of.run_task(TWO, read, [Input(INPUT_PREFIX + "x", schema, made.parts)])
    assert caught.value.executor_id == ONE
    assert [each.executor_id for each in await of.describe()] == [TWO]
    await of.aclose()


async def test_executor_that_starts_anew_has_forgotten_everything() -> None:
    of = await fleet()
    before = (await of.describe())[0]
    made = await of.run_task(ONE, task("SELECT v FROM t", {"t": NUMBERS}), ())
    await of.lose(ONE)
    of.start(ONE)
    after = next(each for each in await of.describe() if each.executor_id == ONE)
    assert after.incarnation != before.incarnation
    assert after.catalogs == {}
    schema = pa.schema([("c0", pa.int64())])
    with pytest.raises(PartLostError):
        await of.run_task(
            TWO,
            task("SELECT count(*) AS n FROM $x", {"$x": schema}),
            [Input(INPUT_PREFIX + "x", schema, made.parts)],
        )
    await of.aclose()


async def test_reading_on_from_a_lost_executor_fails() -> None:
    of = await fleet(3_000_000)
    stream = aiter(await of.stream(ONE, task("SELECT v FROM t", {"t": NUMBERS}), ()))
    await anext(stream)
    await of.lose(ONE)
    with pytest.raises(ExecutorLostError):
        async for _ in stream:
            pass
    await of.aclose()


async def test_cancelled_call_stops_its_work() -> None:
    of = await fleet(2_000_000)
    running = asyncio.ensure_future(of.run_task(ONE, task(SLOW, {"t": NUMBERS}), ()))
    await asyncio.wait((running,), timeout=0.1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await of.describe())[0].active_tasks == 0
    await of.aclose()
