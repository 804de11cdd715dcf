"""Rows that statements change become changes of a log, and the answer is their count."""

from typing import Any, cast

import pyarrow as pa
import pytest

from caraway_acceleration.changes import changing
from caraway_acceleration.changes.changing import Changeable, CountStream
from caraway_acceleration.changes.ingesting import BaseWithLog
from caraway_core.changes import OP, Op
from caraway_core.errors import InvalidQueryError
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.tables import Twice

SCHEMA = pa.schema([pa.field("id", pa.int64(), False), ("name", pa.string())])


def dataset(*primary: str, twice: Twice = "last") -> Changeable:
    return Changeable(TableName("users"), SCHEMA, primary, twice, BaseWithLog("k", ()))


class GivenBatches:
    """A stream of these batches."""

    schema = pa.schema([("n", pa.int64())])

    def __init__(self, *batches: pa.RecordBatch) -> None:
        self.is_closed = False
        self._batches = iter(batches)

    def __aiter__(self) -> "GivenBatches":
        return self

    async def __anext__(self) -> pa.RecordBatch:
        batch = next(self._batches, None)
        if batch is None:
            raise StopAsyncIteration
        return batch

    async def aclose(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    ("changed", "op"),
    [
        (dataset(), Op.INSERT),
        (dataset("id"), Op.UPSERT),
        (dataset("id", twice="first"), Op.KEEP),
        (dataset("id", twice="refuse"), None),
    ],
)
def test_the_keys_decide_how_rows_are_inserted(changed: Changeable, op: Op | None) -> None:
    assert changing.op_of(changed) is op
    made = changing.given(pa.table({"id": [1, 2]}), changed)
    if op is None:
        assert made is None, "keys must be looked up first"
        return
    assert made is not None and made.received == 2
    assert made.rows.column(OP).to_pylist() == [op, op]
    assert made.rows.column("name").to_pylist() == [None, None]
    assert changing.fits(made, changed)


def test_changes_do_not_fit_a_dataset_with_other_keys() -> None:
    made = changing.given(pa.table({"id": [1]}), dataset())
    assert changing.fits(made, dataset()) and not changing.fits(made, dataset("id"))
    assert not changing.fits(None, dataset())


def test_rows_that_replace_begin_with_the_deletion_of_those_before() -> None:
    made = changing.given(pa.table({"id": [7]}), dataset(), replaces=True)
    assert made is not None and made.received == 1
    assert made.rows.column(OP).to_pylist() == [Op.TRUNCATE, Op.INSERT]


def test_a_required_value_that_is_missing_is_named() -> None:
    with pytest.raises(InvalidQueryError, match="column 'id' may not be NULL; nothing is changed"):
        changing.given(pa.table({"name": ["a"]}), dataset())


async def test_rows_of_a_statement_are_read_whole_but_not_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch = pa.record_batch({"n": [1, 2]})
    stream = GivenBatches(batch, batch)
    assert (await changing.collected(cast(BatchStream, stream))).num_rows == 4
    assert stream.is_closed
    monkeypatch.setattr(changing, "MOST_BYTES", 20)
    stream = GivenBatches(batch, batch)
    with pytest.raises(InvalidQueryError, match="change fewer at a time"):
        await changing.collected(cast(BatchStream, stream))
    assert stream.is_closed


async def test_the_count_is_read_once() -> None:
    stream: Any = CountStream(3, TableName("users"))
    assert not stream.is_at_end and stream.written == "users"
    assert [batch.to_pylist() async for batch in stream] == [[{"count": 3}]]
    assert stream.is_at_end
