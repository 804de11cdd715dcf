"""Generated columns of changes: vectors of texts, and the places of chunks."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from caraway_acceleration.changes.changed_vectors import ChangedVectors
from caraway_core.changes import OFFSET, OP, Changes, Op, log_schema
from caraway_core.manifest import Chunking, EmbeddedColumn

SOURCE = pa.schema([("id", pa.int64()), ("body", pa.string())], {b"k": b"v"})


class Model:
    """Embeds a text as its length; remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def embed(self, model: str, texts: Sequence[str]) -> pa.FixedSizeListArray:
        assert model == "m"
        self.asked.append(list(texts))
        return pa.array([[len(text)] for text in texts], pa.list_(pa.float32(), 1))


def changes(rows: list[tuple[int, str | None, Op]]) -> Changes:
    schema = log_schema(SOURCE)
    columns = [
        pa.array([each[0] for each in rows], pa.int64()),
        pa.array([each[1] for each in rows], pa.string()),
        pa.array([each[2] for each in rows], pa.int8()),
        pa.nulls(len(rows), pa.binary()),
    ]
    return Changes(pa.Table.from_arrays(columns, schema=schema), len(rows))


def vectors(model: Model, chunking: Chunking | None = None) -> ChangedVectors:
    return ChangedVectors([EmbeddedColumn("body", "m", chunking=chunking)], model.embed)


def test_columns_of_a_dataset_are_received_and_generated() -> None:
    plain = vectors(Model())
    stored = plain.stored(SOURCE)
    assert stored.names == ["id", "body", "body_embedding"]
    assert stored.metadata == {b"k": b"v"}
    assert plain.received(stored, SOURCE) == SOURCE
    chunked = vectors(Model(), Chunking()).stored(SOURCE)
    assert chunked.names == ["id", "body", "body_embedding", "body_offset"]
    # A source that brings the vectors itself has nothing generated.
    assert plain.stored(stored) == stored
    assert plain.received(stored, stored) == stored


async def test_each_text_is_embedded_once_and_only_for_rows_that_stay() -> None:
    model = Model()
    added = await vectors(model).added(
        changes([(1, "a", Op.INSERT), (2, "bb", Op.UPSERT), (3, "a", Op.KEEP),
                 (4, "gone", Op.DELETE), (5, None, Op.UPSERT), (6, " \n", Op.UPSERT),
                 (7, "", Op.INSERT), (8, "seen", Op.SEEN), (9, None, Op.TRUNCATE)]),
        SOURCE,
    )  # fmt: skip
    assert model.asked == [["a", "bb"]]
    assert added.rows.column("body_embedding").to_pylist() == [
        [1.0], [2.0], [1.0], None, None, None, None, None, None
    ]  # fmt: skip
    assert added.rows.column_names == ["id", "body", "body_embedding", OP, OFFSET]
    assert (added.received, added.rows.column("body").to_pylist()[3]) == (9, "gone")


async def test_changes_without_texts_ask_no_model() -> None:
    model = Model()
    added = await vectors(model).added(changes([(1, "a", Op.DELETE)]), SOURCE)
    assert (model.asked, added.rows.column("body_embedding").to_pylist()) == ([], [None])
    assert (await vectors(model).added(changes([]), SOURCE)).rows.num_rows == 0
    assert model.asked == []


async def test_chunks_have_vectors_and_places() -> None:
    model = Model()
    added = await vectors(model, Chunking(target_size=4)).added(
        changes([(1, "abcdef", Op.INSERT), (2, None, Op.INSERT), (3, "", Op.INSERT),
                 (4, "gone", Op.DELETE), (5, "abcd", Op.INSERT)]),
        SOURCE,
    )  # fmt: skip
    places = added.rows.column("body_offset").to_pylist()
    texts = added.rows.column("body").to_pylist()
    assert (places[1], places[2], places[3]) == (None, [], None)
    assert "".join(texts[0][start:end] for start, end in places[0]) == "abcdef"
    assert [[end - start for start, end in place or ()] for place in places] == [
        [len(text) for text in model.asked[0][: len(places[0])]], [], [], [], [4]
    ]  # fmt: skip
    lengths = [None if place is None else [[float(e - s)] for s, e in place] for place in places]
    assert added.rows.column("body_embedding").to_pylist() == lengths


async def test_a_model_that_fails_fails_the_changes() -> None:
    async def fails(model: str, texts: Sequence[str]) -> pa.FixedSizeListArray:
        raise ConnectionError("the model is away")

    with pytest.raises(ConnectionError):
        await ChangedVectors([EmbeddedColumn("body", "m")], fails).added(
            changes([(1, "a", Op.INSERT)]), SOURCE
        )
