"""Rows that stay in memory where they were made."""

import asyncio
from pathlib import Path

import pyarrow as pa

from caraway_core.ids import TableName, new_query_id
from caraway_core.protocols.storing import answer_schema
from caraway_core.statements import Statement
from caraway_core.tables import ResultPlace, StoredTable
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.stored import MissingChunks
from caraway_executor.resources.room import TaskMemory
from caraway_executor.statements.local import LocalExecutor
from caraway_executor.storage.chunks import KeptChunks
from caraway_executor.storage.fresh import FreshChunks
from caraway_executor.storage.stores import Stores
from tests.kit.deadlines import eventually
from tests.kit.engine import snapshot
from tests.kit.stored import stored
from tests.kit.storing import order, words

T = TableName("t")
NUMBERS = pa.table({"k": pa.array(range(1000)), "g": pa.array([n % 7 for n in range(1000)])})


async def test_rows_that_were_stored_here_are_not_read_again(tmp_path: Path) -> None:
    local = LocalExecutor(EngineSettings(2))
    local.install(snapshot({"t": await stored(tmp_path, NUMBERS, 4)}))
    made = order(tmp_path, "made", is_kept=True, first_rows=100, chunk_bytes=1)
    stream = await local.execute(new_query_id(), Statement("SELECT * FROM t", {}, store=made))
    schema = answer_schema(stream.schema)
    found = tuple(each.chunk for each in await words(stream))
    assert len(found) > 1
    for file in (tmp_path / "made").iterdir():
        file.unlink()
    fresh = local._chunks._fresh
    assert len(fresh) == len(found)

    spec = StoredTable(schema, ResultPlace("file", str(tmp_path)), "made", found)
    assert await local.load(T, spec) == 1000

    assert len(fresh) == 0
    local.install(snapshot({"t": spec}, version=2))
    total = await local.execute(new_query_id(), Statement("SELECT sum(k) AS s FROM t", {}))
    assert [batch["s"][0].as_py() async for batch in total] == [sum(range(1000))]


async def test_rows_that_nobody_comes_for_are_let_go(tmp_path: Path) -> None:
    spec = await stored(tmp_path, NUMBERS, 2)
    room = TaskMemory()
    kept = KeptChunks(Stores(), room)
    kept._fresh = FreshChunks(held_s=0.01)
    for chunk in spec.chunks:
        kept.keep("made", chunk, NUMBERS.to_batches())
    assert room.taken_bytes == sum(each.size_bytes for each in spec.chunks)

    async def are_gone() -> bool:
        return room.taken_bytes == 0

    assert await eventually(are_gone, "what was made is let go")
    assert kept.held(spec.chunks[0]) is None


async def test_rows_that_were_made_give_way_to_those_of_tasks(tmp_path: Path) -> None:
    spec = await stored(tmp_path, NUMBERS, 2)
    size_bytes = spec.chunks[0].size_bytes
    room = TaskMemory(size_bytes * 3)
    kept = KeptChunks(Stores(), room)
    for chunk in spec.chunks:
        kept.keep("made", chunk, NUMBERS.to_batches())
    assert room.taken_bytes == sum(each.size_bytes for each in spec.chunks)

    def take_most() -> int:
        with room.place() as place:
            place.take_bytes(size_bytes * 3)
            return room.taken_bytes

    assert await asyncio.to_thread(take_most) == size_bytes * 3
    assert kept.held(spec.chunks[0]) is None and room.taken_bytes == 0


async def test_rows_that_were_made_give_way_to_what_is_wanted(tmp_path: Path) -> None:
    spec = await stored(tmp_path, NUMBERS, 2)
    other = pa.table({"k": pa.array(range(1000, 2000)), "g": NUMBERS["g"]})
    made = await stored(tmp_path, other, 2, key="made")
    total = sum(each.size_bytes for each in spec.chunks)
    room = TaskMemory(total * 5 // 4)
    kept = KeptChunks(Stores(), room)
    kept.keep("t", spec.chunks[0], NUMBERS.slice(0, 500).to_batches())
    for chunk in made.chunks:
        kept.keep("made", chunk, other.to_batches())
    assert kept.held(made.chunks[0]) is not None
    assert kept.held(made.chunks[1]) is None, "it does not fit, and is read when it is wanted"

    chunks = await kept.bring([MissingChunks(T, spec, spec.chunks)])

    assert len({id(each) for each in chunks}) == 2
    assert room.taken_bytes == total
    assert kept.held(made.chunks[0]) is None
