"""A reader over any source: ends, errors in the middle, and closing at every point."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway.errors import BrokenResponseError
from caraway.rows.readers import RecordReader, opened
from tests.client.rows.row_sources import SCHEMA, Source, batch


def reader(source: Source) -> RecordReader:
    return opened(source)


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=5))
def test_all_rows_come_once_and_in_order(parts: list[list[int]]) -> None:
    source = Source(*(batch(*part) for part in parts))
    found = reader(source)
    seen: list[int] = []
    table = found.read_all(lambda each: seen.append(each.num_rows)).table
    expected = [number for part in parts for number in part]
    assert table.column("n").to_pylist() == expected and table.schema == SCHEMA
    assert seen == [len(part) for part in parts] and found.rows_read == len(expected)
    assert source.closed == 1 and source.asked_late == 0
    assert found.read_next_batch() is None


def test_an_answer_without_rows_ends_at_once_and_is_closed() -> None:
    source = Source()
    found = reader(source)
    assert found.read_next_batch() is None and list(found) == []
    assert found.read_all().table.num_rows == 0
    found.close()
    assert source.closed <= 1


@pytest.mark.parametrize("error", [BrokenResponseError("cut"), KeyboardInterrupt(), OSError("x")])
def test_an_error_in_the_middle_is_raised_once_and_the_source_closed(
    error: BaseException,
) -> None:
    source = Source(batch(1), batch(2), error=error)
    found = reader(source)
    assert [found.read_next_batch(), found.read_next_batch()] == [batch(1), batch(2)]
    with pytest.raises(type(error)):
        found.read_next_batch()
    assert source.closed == 1
    # Never an end, as if all rows had come.
    with pytest.raises(BrokenResponseError, match="closed before the last row"):
        found.read_next_batch()


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_a_reader_that_is_closed_early_says_so(taken: int) -> None:
    source = Source(batch(1), batch(2), batch(3))
    found = reader(source)
    for _ in range(taken):
        found.read_next_batch()
    found.close()
    found.close()
    assert source.closed == 1
    with pytest.raises(BrokenResponseError, match="closed before the last row"):
        list(found)


def test_leaving_the_block_closes_also_after_an_error_of_the_caller() -> None:
    source = Source(batch(1), batch(2))
    with pytest.raises(ZeroDivisionError), reader(source) as found:
        next(iter(found))
        raise ZeroDivisionError
    assert source.closed == 1


def test_an_error_of_the_callback_closes_the_source() -> None:
    source = Source(batch(1), batch(2))

    def fails(_batch: pa.RecordBatch) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        reader(source).read_all(fails)
    assert source.closed == 1


def test_rows_as_dictionaries_close_when_the_caller_stops() -> None:
    source = Source(batch(1, 2), batch(3))
    rows = reader(source).rows()
    assert next(rows) == {"n": 1}
    rows.close()  # type: ignore[attr-defined]
    assert source.closed == 1


def test_rows_as_dictionaries_refuse_columns_of_one_name() -> None:
    schema = pa.schema([("a", pa.int64()), ("a", pa.int64())])
    found = RecordReader(Source(), schema, None)
    with pytest.raises(Exception, match="'a'"):
        list(found.rows())


def test_arrow_reads_the_rows_that_are_left() -> None:
    source = Source(batch(1), batch(2), batch(3))
    found = reader(source)
    found.read_next_batch()
    assert pa.table(found).column("n").to_pylist() == [2, 3]
    assert source.closed == 1


def test_an_error_reaches_whoever_reads_over_arrow() -> None:
    source = Source(batch(1), error=BrokenResponseError("the rows end early"))
    with pytest.raises((BrokenResponseError, pa.ArrowException), match="the rows end early"):
        reader(source).to_reader().read_all()
    assert source.closed == 1


@pytest.mark.parametrize("fails_in", ["read_schema", "read_batch"])
def test_a_source_that_fails_to_open_is_closed(fails_in: str) -> None:
    source = Source(error=BrokenResponseError("no"))
    if fails_in == "read_schema":

        def read_schema() -> pa.Schema:
            raise BrokenResponseError("no")

        source.read_schema = read_schema  # type: ignore[method-assign]
    with pytest.raises(BrokenResponseError, match="no"):
        reader(source)
    assert source.closed == 1


def test_a_source_that_is_closed_by_another_thread_is_no_end() -> None:
    """A source returns None when it is closed while it waits; the rows are not complete then."""
    holder: list[Callable[[], None]] = []

    class Closing(Source):
        def read_batch(self) -> pa.RecordBatch | None:
            found = super().read_batch()
            if found is None and holder:
                holder[0]()
            return found

    found = reader(Closing(batch(1)))
    holder.append(found.close)
    assert found.read_next_batch() == batch(1)
    with pytest.raises(BrokenResponseError, match="closed before the last row"):
        found.read_next_batch()
