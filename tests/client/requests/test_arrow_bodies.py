"""Arrow streams in bodies of HTTP: any cuts, ends that are missing, other content, closing."""

import io
import threading
from collections.abc import Generator, Iterable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway.errors import BrokenResponseError, UnreachableError
from caraway.requests.arrow_bodies import HttpBatches
from caraway.rows.readers import opened

WAIT_S = 30.0
TABLE = pa.table({"n": list(range(100)), "s": [f"text {n}" for n in range(100)]})


def body(table: pa.Table, rows: int = 10) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=rows):
            writer.write_batch(batch)
    return sink.getvalue()


class Chunks:
    """The chunks of a body, which notices when it is closed."""

    def __init__(self, parts: Iterable[bytes], error: BaseException | None = None) -> None:
        self.closed = 0
        self.chunks = self._chunks(parts, error)

    def _chunks(
        self, parts: Iterable[bytes], error: BaseException | None
    ) -> Generator[bytes, None, None]:
        try:
            yield from parts
            if error is not None:
                raise error
        finally:
            self.closed += 1


def cut(content: bytes, size: int) -> list[bytes]:
    return [content[start : start + size] for start in range(0, len(content), size)]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3000), st.integers(1, 120))
def test_rows_are_the_same_however_the_body_is_cut(size: int, rows: int) -> None:
    found = Chunks(cut(body(TABLE, rows), size))
    assert opened(HttpBatches(found.chunks)).read_all().table.equals(TABLE)
    assert found.closed == 1


def test_empty_chunks_are_no_end() -> None:
    parts = [part for each in cut(body(TABLE), 100) for part in (each, b"")]
    assert opened(HttpBatches(Chunks(parts).chunks)).read_all().table.equals(TABLE)


def test_an_answer_without_rows_has_its_schema() -> None:
    reader = opened(HttpBatches(Chunks([body(TABLE.slice(0, 0))]).chunks))
    assert reader.schema == TABLE.schema and reader.read_all().table.num_rows == 0


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_body_that_ends_early_is_never_taken_for_all_rows(data: st.DataObject) -> None:
    whole = body(TABLE)
    length = data.draw(st.integers(0, len(whole) - 1))
    found = Chunks(cut(whole[:length], 64))
    with pytest.raises(BrokenResponseError):
        opened(HttpBatches(found.chunks)).read_all()
    assert found.closed == 1


@pytest.mark.parametrize("batches", [0, 1, 10])
def test_a_body_without_the_mark_of_its_end_is_incomplete(batches: int) -> None:
    """It is cut between two batches, where Arrow sees nothing wrong."""
    whole = body(TABLE.slice(0, 10 * batches))
    with pytest.raises(BrokenResponseError, match="the end of the rows is missing"):
        opened(HttpBatches(Chunks(cut(whole[:-8], 64)).chunks)).read_all()


@pytest.mark.parametrize(
    "content", [b"", b"<html>502</html>", b"{}", b"\xff" * 100, b"\0" * 1000, b"ARROW1"]
)
def test_something_else_is_refused(content: bytes) -> None:
    with pytest.raises(BrokenResponseError, match=r"expected an Arrow stream|incomplete"):
        opened(HttpBatches(Chunks([content]).chunks))


@pytest.mark.parametrize("error", [UnreachableError("http://h", "reset"), KeyboardInterrupt()])
@pytest.mark.parametrize("at", [0, 500, 3000])
def test_an_error_of_the_connection_is_raised_as_it_is(error: BaseException, at: int) -> None:
    found = Chunks(cut(body(TABLE)[:at], 50), error)
    with pytest.raises(type(error)):
        opened(HttpBatches(found.chunks)).read_all()
    assert found.closed == 1


def test_closing_early_closes_the_connection_once() -> None:
    found = Chunks(cut(body(TABLE), 200))
    batches = HttpBatches(found.chunks)
    assert batches.read_schema() == TABLE.schema and batches.read_batch() is not None
    batches.close()
    batches.close()
    assert found.closed == 1 and batches.read_batch() is None


def test_closing_waits_for_a_read_in_another_thread_and_ends_it() -> None:
    may_go = threading.Event()
    whole = cut(body(TABLE), 300)

    def parts() -> Generator[bytes, None, None]:
        yield from whole[:3]
        assert may_go.wait(WAIT_S)
        yield from whole[3:]

    found = Chunks(parts())
    batches = HttpBatches(found.chunks)
    batches.read_schema()
    seen: list[object] = []

    def read() -> None:
        while (batch := batches.read_batch()) is not None:
            seen.append(batch)

    reading = threading.Thread(target=read)
    reading.start()
    closing = threading.Thread(target=batches.close)
    closing.start()
    may_go.set()
    for thread in (reading, closing):
        thread.join(WAIT_S)
        assert not thread.is_alive()
    assert found.closed == 1
