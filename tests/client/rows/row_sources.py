"""A source of batches that counts what was read of it."""

import pyarrow as pa

SCHEMA = pa.schema([("n", pa.int64())])


def batch(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64())], schema=SCHEMA)


class Source:
    """Gives batches, then ends or fails; counts how often it is closed and asked after that."""

    def __init__(self, *batches: pa.RecordBatch, error: BaseException | None = None) -> None:
        self._batches = iter(batches)
        self._error = error
        self.closed = 0
        self.asked_late = 0

    def read_schema(self) -> pa.Schema:
        return SCHEMA

    def read_batch(self) -> pa.RecordBatch | None:
        self.asked_late += self.closed > 0
        found = next(self._batches, None)
        if found is None and self._error is not None:
            raise self._error
        return found

    def close(self) -> None:
        self.closed += 1
