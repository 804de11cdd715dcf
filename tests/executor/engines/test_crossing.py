import os
import pickle
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.changes import LogEntry
from caraway_core.ids import PrincipalId, TableName
from caraway_core.protocols.results import ChunkInfo
from caraway_core.statements import Statement
from caraway_executor.engines import shared_memory
from caraway_executor.engines.crossing import ReceivingEnd, RowsOut, SchemaCache, SendingEnd
from caraway_executor.engines.shared_memory import ReadableMemory, WritableMemory
from tests.kit.engine import memory, snapshot


def crossed(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def inward() -> ReceivingEnd:
    return ReceivingEnd(lambda name: lambda viewer: pa.table({"of": [f"{name} for {viewer}"]}))


def entry(index: int) -> LogEntry:
    return LogEntry(ChunkInfo(index, 1, 1, f"{index}"))


def test_of_a_catalog_only_what_changed_is_sent() -> None:
    out, arrives = SendingEnd(), inward()
    one, two = memory(a=[1]), memory(a=[2])
    first = snapshot({"t": one, "u": one, "v": "SELECT 1"})
    before = arrives.catalog(crossed(out.catalog(first)))
    assert list(before.tables) == ["t", "u", "v"]
    second = out.catalog(snapshot({"t": two, "u": one}, version=2))
    assert list(second.changed) == ["t"]
    after = arrives.catalog(crossed(second))
    assert list(after.tables) == ["t", "u"]
    # An unchanged table is the same object, by which the engine sees that it did not change.
    assert after.tables[TableName("u")] is before.tables[TableName("u")]
    assert after.tables[TableName("t")] == two


def test_system_tables_are_asked_for_where_they_are_read() -> None:
    made = SendingEnd().catalog(snapshot({}, {"tasks": lambda _viewer: pa.table({})}))
    arrived = inward().catalog(crossed(made))
    content = arrived.system[TableName("tasks")](PrincipalId("p"))
    assert content.to_pydict() == {"of": ["tasks for p"]}


def test_statement_arrives_as_it_was() -> None:
    statement = Statement(
        "SELECT $1", {"1": 5}, may_write=True, writable=frozenset({TableName("t")}),
        viewer=PrincipalId("p"), bound={TableName("t"): TableName("u")},
    )  # fmt: skip
    assert inward().statement(crossed(SendingEnd().statement(statement))) == statement


def test_of_a_log_only_new_entries_are_sent() -> None:
    out, arrives = SendingEnd(), inward()
    log = (entry(1), entry(2))
    longer, other = (*log, entry(3)), (entry(4),)
    for logs, sent in (
        ({"a": log}, {"a": (0, log)}),
        ({"a": log, "b": other}, {"a": (2, ()), "b": (0, other)}),
        ({"a": longer}, {"a": (2, longer[2:])}),
        ({"a": other}, {"a": (0, other)}),
        ({"a": longer}, {"a": (0, longer)}),
        ({"a": log}, {"a": (0, log)}),
    ):
        made = out.logs(logs)
        assert made == sent
        assert arrives.logs(crossed(made)) == logs


ROWS = {
    "numbers": pa.table({"a": pa.array([1, None, 3])}),
    "views": pa.table({"a": pa.array(["x" * 40, None, "y"], pa.string_view())}),
    "dictionary": pa.table({"a": pa.array(["x", None, "x"]).dictionary_encode()}),
    "nested": pa.table({"a": [[{"b": "x"}], None, []]}),
    "views of dictionaries": pa.table(
        {"a": pa.array(["x", "y"]).dictionary_encode(), "b": pa.array(["p", "q"], pa.string_view())}
    ),
    "no rows": pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string_view())}),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=list(ROWS))
def test_rows_arrive_as_they_were(rows: pa.Table) -> None:
    batch = (rows.to_batches() or [pa.RecordBatch.from_pylist([], schema=rows.schema)])[0]
    out = RowsOut(batch.schema)
    rows = SchemaCache().rows(batch.schema.serialize().to_pybytes())
    [arrived] = rows.batches(out.body(batch), out.is_whole)
    arrived.validate(full=True)
    assert arrived.equals(batch)
    assert arrived.schema == batch.schema


@pytest.mark.parametrize("is_shared", [True, False], ids=["shared memory", "socket"])
@pytest.mark.parametrize("rows", ROWS.values(), ids=list(ROWS))
async def test_several_batches_arrive_as_they_were(rows: pa.Table, is_shared: bool) -> None:
    batch = (rows.to_batches() or [pa.RecordBatch.from_pylist([], schema=rows.schema)])[0]
    out = RowsOut(batch.schema)
    descriptor = shared_memory.create()
    memory, reader = WritableMemory(descriptor), ReadableMemory(descriptor)
    os.close(descriptor)
    made = out.sent(7, [batch, batch.slice(1), batch], memory if is_shared else None)
    sent, body, held = made
    if is_shared:
        assert held is not None and sent.place == held.place and body is None
        body = reader.view(held.place, lambda _start: None)
    assert body is not None and sent.number == 7 and sent.is_whole
    arrived = SchemaCache().rows(batch.schema.serialize().to_pybytes()).batches(body, True)
    for each in arrived:
        each.validate(full=True)
    assert arrived == [batch, batch.slice(1), batch]


def test_large_batches_are_cut_for_readers_of_few_rows_at_once() -> None:
    batch = pa.record_batch({"a": [str(number) for number in range(20_000)]})
    rows = SchemaCache().rows(batch.schema.serialize().to_pybytes())
    body = RowsOut(batch.schema).body(batch)
    assert [each.num_rows for each in rows.batches(body, False)] == [10_000, 10_000]
    assert rows.batches(body, False, stays_uncut=True) == [batch]


@pytest.mark.parametrize("is_plain", [True, False])
@pytest.mark.parametrize("is_uncut", [True, False])
def test_readers_choose_between_types_and_sizes_on_their_own(
    is_plain: bool, is_uncut: bool
) -> None:
    batch = pa.record_batch(
        {"a": pa.array([str(number) for number in range(20_000)], pa.string_view())}
    )
    rows = SchemaCache().rows(batch.schema.serialize().to_pybytes())
    body = RowsOut(batch.schema).body(batch)
    found = rows.batches(body, False, stays_plain=is_plain, stays_uncut=is_uncut)
    assert {each.schema.field("a").type for each in found} == {
        pa.string() if is_plain else pa.string_view()
    }
    assert [each.num_rows for each in found] == ([20_000] if is_uncut else [10_000, 10_000])
    assert [text for each in found for text in each["a"].to_pylist()] == batch["a"].to_pylist()


def test_slice_does_not_take_along_what_it_was_cut_from() -> None:
    wide = pa.table({"a": pa.array(["x" * 1_000] * 10_000, pa.string_view())}).to_batches()[0]
    assert RowsOut(wide.schema).body(wide.slice(5, 1)).size < 10_000
