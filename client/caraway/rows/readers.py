"""Streams of record batches, whatever brings them."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from caraway.errors import BrokenResponseError
from caraway.requests.closing import Closing

if TYPE_CHECKING:
    import pyarrow as pa

    from caraway.rows.results import SqlResult


class BatchSource(Protocol):
    """Batches in order. `close` cancels the statement unless it has ended."""

    def read_schema(self) -> "pa.Schema": ...
    def read_batch(self) -> "pa.RecordBatch | None": ...
    def close(self) -> None: ...


class RecordReader(Closing):
    """The rows of a statement, read batch by batch in constant memory.

    Iterate over it, or pass it to anything that reads Arrow streams. It raises an error if the
    rows end early. Leaving its `with` block cancels the statement unless all rows were read.
    """

    def __init__(self, source: BatchSource, schema: "pa.Schema", first: "pa.RecordBatch | None"):
        self._source = source
        self._first = first
        self._has_more = first is not None
        self._is_closed = False
        self.schema = schema
        self.rows_read = 0

    def __iter__(self) -> Iterator["pa.RecordBatch"]:
        while (batch := self.read_next_batch()) is not None:
            yield batch

    def read_next_batch(self) -> "pa.RecordBatch | None":
        """Return the next batch, or None after the last one."""
        if self._is_closed and self._has_more:
            raise BrokenResponseError("the reader was closed before the last row")
        if not self._has_more:
            return None
        batch, self._first = self._first, None
        if batch is None:
            try:
                batch = self._source.read_batch()
            except BaseException:
                self.close()
                raise
        if batch is None:
            if self._is_closed:
                raise BrokenResponseError("the reader was closed before the last row")
            self._has_more = False
            self.close()
            return None
        self.rows_read += batch.num_rows
        return batch

    def read_all(self, on_data: Callable[["pa.RecordBatch"], object] | None = None) -> "SqlResult":
        """Read the remaining rows. `on_data` gets each batch as it arrives."""
        import pyarrow as pa

        from caraway.rows.results import SqlResult

        batches = []
        with self:
            for batch in self:
                if on_data is not None:
                    on_data(batch)
                batches.append(batch)
        return SqlResult(pa.Table.from_batches(batches, self.schema))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the remaining rows as dictionaries."""
        from caraway.rows.results import check_names

        check_names(self.schema.names, "rows as dictionaries")
        with self:
            for batch in self:
                yield from batch.to_pylist()

    def to_reader(self) -> "pa.RecordBatchReader":
        """Return the remaining rows as a `pyarrow.RecordBatchReader`."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def close(self) -> None:
        """Cancel the statement unless all rows were read."""
        if not self._is_closed:
            self._is_closed = True
            self._first = None
            self._source.close()


def opened(source: BatchSource) -> RecordReader:
    """Wait for the schema and the first batch, so that earlier failures can be retried."""
    try:
        return RecordReader(source, source.read_schema(), source.read_batch())
    except BaseException:
        source.close()
        raise
