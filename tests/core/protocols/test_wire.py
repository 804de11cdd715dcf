"""Calls and pages between schedulers and executors come out as they went in."""

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from caraway_core.ids import QueryId, TableName
from caraway_core.protocols import wire
from caraway_core.protocols.fleet import AnswerPage
from caraway_core.protocols.wire import PackedPage
from caraway_core.statements import GivenRows, Statement

SMALL = pa.record_batch(
    {
        "id": pa.array([1, None, 3], pa.int64()),
        "text": pa.array(["a", "", None], pa.string_view()),
        "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
        "tags": pa.array([[1], None, []], pa.list_(pa.int32())),
    }
)
LARGE = pa.record_batch({"id": pa.array(range(20_000), pa.int64())})


@pytest.mark.parametrize(
    "page",
    [
        AnswerPage("", (), True),
        AnswerPage("", (), True, SMALL.schema, True),
        AnswerPage("c1", (SMALL,), False, SMALL.schema),
        AnswerPage("c1", (SMALL, SMALL.slice(1, 1), SMALL.slice(0, 0)), True),
        AnswerPage("c2", (LARGE, LARGE), False, LARGE.schema, True, TableName("t")),
    ],
    ids=["nothing", "no rows", "one batch", "slices", "large"],
)
def test_a_page_comes_out_as_it_went_in(page: AnswerPage) -> None:
    sent = wire.pack(page)
    # Ray pickles everything except bytes.
    assert wire.unpack(pickle.loads(pickle.dumps(sent))) == page


def test_a_schema_that_the_rows_have_is_sent_once() -> None:
    page = AnswerPage("", (SMALL,), True, SMALL.schema)
    packed = wire.pack(page)
    assert isinstance(packed, bytes)
    same = pickle.loads(packed)
    assert isinstance(same, PackedPage) and same.schema is None
    other = replace(page, schema=SMALL.schema.with_metadata({"made": "by hand"}))
    found = wire.unpack(wire.pack(other)).schema
    assert found is not None and found.equals(other.schema, check_metadata=True)


def test_only_the_rows_of_large_pages_stay_a_buffer() -> None:
    assert isinstance(wire.pack(AnswerPage("", (SMALL,), True)), bytes)
    large = wire.pack(AnswerPage("", (LARGE,), True))
    assert isinstance(large, PackedPage) and isinstance(large.rows, pa.Buffer)


def test_the_rows_of_a_page_share_its_memory() -> None:
    sent = wire.pack(AnswerPage("", (LARGE,), True))
    assert isinstance(sent, PackedPage) and isinstance(sent.rows, pa.Buffer)
    (batch,) = wire.unpack(sent).batches
    values = batch.column(0).buffers()[1]
    begin = sent.rows.address
    assert begin <= values.address < begin + sent.rows.size


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"n": [1, None], "s": ["a", "\N{SNOWMAN}"]}),
        pa.table({"n": pa.chunked_array([[1], [2, 3]])}),
        pa.table({"s": pa.array([], pa.string_view())}),
        pa.table({"n": [1, 2, 3]}).select([]),
        pa.table({"n": [1, 2, 3]}).slice(1, 1),
        pa.table({"n": [{"m": [1]}]}).replace_schema_metadata({"k": "v"}),
    ],
    ids=["nulls", "chunks", "no rows", "no columns", "slice", "nested"],
)
def test_a_table_comes_out_as_it_went_in(table: pa.Table) -> None:
    read = wire.unpack_table(wire.pack_table(table))
    assert read.equals(table, check_metadata=True)
    assert read.num_rows == table.num_rows


def test_the_arguments_of_a_call_come_out_as_they_went_in() -> None:
    rows = pa.table({"id": [1, 2]})
    given = GivenRows.named(TableName("given.x"), rows)
    statement = Statement("SELECT $1", {"1": "é\0"}, given=given)
    arguments = ("q/1", QueryId("q"), statement, "origin")
    packed = wire.pack_call(*arguments)
    assert isinstance(packed, bytes)
    assert wire.unpack_call(packed) == arguments
    assert wire.unpack_call(wire.pack_call()) == ()
