import random
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext

from caraway_core.tables.structs import has_required, has_structs
from caraway_engine.rows.null_structs import with_null_fields
from tests.kit.engine import memory, rows, session

INNER = pa.struct([("q", pa.int64()), ("t", pa.string())])
S = pa.struct(
    [
        ("a", pa.int64()),
        ("b", pa.string_view()),
        ("f", pa.bool_()),
        ("d", pa.decimal128(12, 2)),
        ("c", pa.dictionary(pa.int32(), pa.string())),
        ("i", INNER),
        ("l", pa.list_(INNER)),
        ("x", pa.list_(pa.float32(), 2)),
        ("m", pa.map_(pa.string(), INNER)),
    ]
)


def inner(values: random.Random) -> Any:
    if values.random() < 0.4:
        return None
    return {"q": values.choice([None, 1, 2]), "t": values.choice([None, "x"])}


def struct(values: random.Random) -> Any:
    if values.random() < 0.4:
        return None
    keys = values.sample(["k", "l", "n"], values.randrange(3))
    return {
        "a": values.choice([None, 5]),
        "b": values.choice([None, "long enough to be outside"]),
        "f": values.choice([None, True]),
        "d": None,
        "c": values.choice([None, "w"]),
        "i": inner(values),
        "l": [inner(values) for _ in range(values.randrange(3))],
        "x": [1.0, 2.0],
        "m": [(key, inner(values)) for key in keys],
    }


def read(batch: pa.RecordBatch, *expressions: str) -> list[list[Any]]:
    context = SessionContext()
    context.register_record_batches("t", [[batch]])
    found = context.sql(f"SELECT {', '.join(expressions)} FROM t").to_arrow_table()
    return [column.to_pylist() for column in found.columns]


def field(value: Any, *names: str) -> Any:
    for name in names:
        value = None if value is None else value[name]
    return value


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_the_same_and_fields_are_null(seed: int) -> None:
    values = random.Random(seed)
    array = pa.array([struct(values) for _ in range(20)], S)
    if seed % 2:
        array = array.slice(3, 11)
    batch = pa.record_batch({"s": array})
    made = with_null_fields(batch)
    made.validate(full=True)
    assert made.schema == batch.schema
    rows = batch.column("s").to_pylist()
    assert made.column("s").to_pylist() == rows
    found = read(made, "s['a']", "s['b']", "s['f']", "s['c']", "s['i']['q']", "s['i']['t']")
    paths = (("a",), ("b",), ("f",), ("c",), ("i", "q"), ("i", "t"))
    assert found == [[field(row, *path) for row in rows] for path in paths]


@pytest.mark.parametrize(
    "type_",
    [pa.list_(INNER), pa.large_list(INNER), pa.list_(INNER, 2)],
    ids=["list", "large list", "list of a fixed size"],
)
def test_structs_in_lists_have_null_fields(type_: pa.DataType) -> None:
    rows = [[{"q": 1, "t": "x"}, None], None, [None, {"q": 2, "t": None}]]
    for array in (pa.array(rows, type_), pa.array([[None, None], *rows], type_).slice(1)):
        made = with_null_fields(pa.record_batch({"l": array}))
        made.validate(full=True)
        assert made.column("l").to_pylist() == rows
        assert read(made, "l[1]['q']", "l[2]['q']") == [[1, None, None], [None, None, 2]]


def test_values_of_maps_have_null_fields() -> None:
    array = pa.array([[("k", None)], [("k", {"q": 3, "t": None})]], pa.map_(pa.string(), INNER))
    made = with_null_fields(pa.record_batch({"m": array.slice(0, 2)}))
    made.validate(full=True)
    assert made.column("m").equals(array)
    assert made.column("m").items.field(0).to_pylist() == [None, 3]


def test_required_fields_stay_as_they_are() -> None:
    # NULL in one would be no valid array.
    required = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    made = with_null_fields(pa.record_batch({"s": pa.array([{"a": 1}, None], required)}))
    made.validate(full=True)
    assert made.column("s").field(0).null_count == 0


def test_other_columns_and_values_are_shared() -> None:
    batch = pa.record_batch({"n": [1, 2], "s": pa.array([{"a": 1}, {"a": 2}])})
    made = with_null_fields(batch)
    assert made.column("n").buffers()[1].address == batch.column("n").buffers()[1].address
    inner_buffers = made.column("s").field(0).buffers(), batch.column("s").field(0).buffers()
    assert inner_buffers[0][1].address == inner_buffers[1][1].address
    flat = pa.record_batch({"n": [1]})
    assert with_null_fields(flat) is flat
    empty = pa.record_batch({"s": pa.array([{}, None], pa.struct([]))})
    assert with_null_fields(empty).column("s").to_pylist() == [{}, None]


def test_structs_are_found_in_nested_types() -> None:
    assert has_structs(pa.map_(pa.string(), pa.int64()))  # Its entries are structs.
    assert has_structs(pa.list_(pa.list_(INNER)))
    assert not has_structs(pa.list_(pa.int64()))


def test_required_fields_are_found_in_nested_types() -> None:
    required = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    assert has_required(pa.field("s", required))
    assert not has_required(pa.field("s", required, nullable=False))
    assert has_required(pa.field("s", pa.struct([pa.field("i", required)]), nullable=False))
    assert has_required(pa.field("l", pa.list_(required)))
    assert not has_required(pa.field("l", pa.list_(pa.field("x", required, nullable=False))))
    assert not has_required(pa.field("m", pa.map_(pa.string(), INNER)))


async def test_statements_over_rows_in_memory_read_null() -> None:
    of = session({"t": memory(n=[1, 2], s=pa.array([{"a": 1}, None]))})
    assert await rows(of, "SELECT s['a'] AS a FROM t ORDER BY n") == [{"a": 1}, {"a": None}]
    assert await rows(of, "SELECT n FROM t WHERE s['a'] IS NULL") == [{"n": 2}]
    assert await rows(of, "SELECT count(s['a']) AS n FROM t") == [{"n": 1}]


async def test_the_engine_still_needs_it() -> None:
    """Once this fails, the engine has the fix, and the remedy can be removed."""
    batch = pa.record_batch({"s": pa.array([{"a": 1}, None])})
    assert read(batch, "s['a']") == [[1, 0]]


@pytest.mark.parametrize("start", [0, 1])
def test_null_maps_have_no_entries(start: int) -> None:
    made = pa.array([[("k", 0)], [("k", 1)], [("k", 2)], None], pa.map_(pa.string(), pa.int64()))
    nulls = pa.py_buffer(bytes([0b0101]))
    buffers = [nulls, made.buffers()[1]]
    pairs = [made.keys, made.items]
    entries = pa.StructArray.from_arrays(pairs, fields=list(made.type.field(0).type))
    hidden = pa.Array.from_buffers(made.type, 4, buffers, children=[entries]).slice(start)
    batch = pa.record_batch({"m": hidden})
    assert read(batch, "m['k']")[0][1 - start] == 1
    masked = with_null_fields(batch)
    masked.validate(full=True)
    assert masked.column("m").to_pylist() == hidden.to_pylist()
    assert read(masked, "m['k']") == [[0, None, 2, None][start:]]
