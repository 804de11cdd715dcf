from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError
from caraway_core.partitions.keys import PartitionBy, parse
from caraway_core.partitions.naming import name_of
from caraway_core.protocols.storing import StoredChunk, answer_schema, in_order
from caraway_executor.storage.chunking import PartitionChunker
from caraway_executor.storage.storing import StoringStream
from caraway_plugins.stores.folder import FolderResultStore
from tests.kit.storing import Rows, order, read_chunks, words

ROW = 8


def by(*terms: str) -> PartitionBy:
    return PartitionBy(tuple(map(parse, terms)))


def numbers(start: int, count: int) -> pa.RecordBatch:
    n = pa.array(range(start, start + count), pa.int64())
    return pa.record_batch({"n": n, "rest": pa.array([each.as_py() % 3 for each in n])})


def stored(folder: Path, rows: Rows, *terms: str, **options: Any) -> StoringStream:
    made = order(folder, cut=by(*terms), **options)
    return StoringStream(rows, made, FolderResultStore(folder))


def partitions(found: list[StoredChunk]) -> set[str]:
    return {each.chunk.partition for each in found}


async def test_each_chunk_holds_rows_of_one_partition_in_order(tmp_path: Path) -> None:
    rows = Rows([numbers(start, 1000) for start in range(0, 9000, 1000)])
    stream = stored(tmp_path, rows, "rest", chunk_bytes=1500 * 2 * ROW, task=2)
    found = await words(stream)
    assert partitions(found) == {"[0]", "[1]", "[2]"}
    assert sorted(each.chunk.index for each in found) == list(range(len(found)))
    for rest in range(3):
        chunks = [each.chunk for each in found if each.chunk.partition == name_of([rest])]
        table = await read_chunks(tmp_path, chunks, answer_schema(stream.schema))
        assert table["n"].to_pylist() == list(range(rest, 9000, 3))
        assert table["rest"].unique().to_pylist() == [rest]


async def test_values_of_expressions_part_the_rows_and_are_dropped(tmp_path: Path) -> None:
    rows = Rows([numbers(0, 10)])
    schema = pa.schema([pa.field("n", pa.int64(), metadata={"is": "kept"}), ("year", pa.int64())])
    stream = stored(tmp_path, rows, "n % 3", schema=schema)
    found = await words(stream)
    kept = answer_schema(stream.schema)
    assert kept.equals(pa.schema([schema.field("n")]), check_metadata=True)
    assert partitions(found) == {"[0]", "[1]", "[2]"}
    table = await read_chunks(tmp_path, in_order(found), kept)
    assert sorted(table["n"].to_pylist()) == list(range(10))


async def test_views_of_text_are_stored_by_partition_as_what_they_are(tmp_path: Path) -> None:
    texts = pa.array(["a", None, "b", "a"] * 10, pa.string_view())
    lists = pa.array([["x"], None, [], ["y"]] * 10, pa.list_(pa.string_view()))
    batch = pa.record_batch({"w": texts, "l": lists})
    stream = stored(tmp_path, Rows([batch]), "w")
    found = await words(stream)
    assert partitions(found) == {'["a"]', '["b"]', "[null]"}
    schema = answer_schema(stream.schema)
    assert schema.types == batch.schema.types
    (chunk,) = [each.chunk for each in found if each.chunk.partition == '["a"]']
    table = await read_chunks(tmp_path, [chunk], schema)
    assert table.to_pylist() == [{"w": "a", "l": [each]} for each in "xy"] * 10


async def test_an_answer_without_rows_has_no_partition(tmp_path: Path) -> None:
    stream = stored(tmp_path, Rows([numbers(0, 0)]), "bucket(4, n)")
    assert await words(stream) == []


def test_the_largest_partition_is_closed_when_all_together_wait_for_too_much() -> None:
    made = order(Path("/r"), cut=by("rest"), chunk_bytes=1 << 30)
    chunker = PartitionChunker(made, numbers(0, 1).schema, waiting_bytes=100 * 2 * ROW)
    batch = numbers(0, 90).filter(pa.array([each % 3 != 2 or each < 20 for each in range(90)]))
    chunker.gather(batch)
    assert chunker.part() == []
    chunker.gather(numbers(90, 90))
    early = dict(chunker.part())
    assert early.keys() <= {"[0]", "[1]"} and early
    rows = [chunk for _, chunk in [*early.items(), *chunker.rest()]]
    found = sorted(n for chunk in rows for piece in chunk for n in piece["n"].to_pylist())
    assert found == sorted([*batch["n"].to_pylist(), *range(90, 180)])


def test_what_was_gathered_bit_by_bit_is_one_batch() -> None:
    chunker = PartitionChunker(order(Path("/r"), cut=by("rest")), numbers(0, 1).schema)
    for start in range(0, 300, 30):
        chunker.gather(numbers(start, 30))
        chunker.part()
    chunks = dict(chunker.rest())
    assert {name: [piece.num_rows for piece in chunk] for name, chunk in chunks.items()} == {
        "[0]": [100],
        "[1]": [100],
        "[2]": [100],
    }


async def test_too_many_partitions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match=r"more than 1,000 partitions; partition by a column"):
        await words(stored(tmp_path, Rows([numbers(0, 1001)]), "n"))
    assert len(await words(stored(tmp_path, Rows([numbers(0, 1000)]), "n"))) == 1000
