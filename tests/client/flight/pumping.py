"""A source of batches for pumps that a test feeds one by one."""

import threading

import pyarrow as pa

from caraway.flight.pumps import BatchPump, PumpSource

SCHEMA = pa.schema([("n", pa.int64())])
WAIT_S = 30.0


def batch(number: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array([number], pa.int64())], schema=SCHEMA)


class Feed(PumpSource):
    """Gives numbered batches, and waits at one of them until it is cancelled."""

    def __init__(self, count: int, stalls_at: int = -1, error: BaseException | None = None) -> None:
        self.taken = 0
        self.cancelled = threading.Event()
        self.stalled = threading.Event()
        self._count = count
        self._stalls_at = stalls_at
        self._error = error

    def read_schema(self) -> pa.Schema:
        self._stall(0)
        return SCHEMA

    def read_batch(self) -> pa.RecordBatch | None:
        self._stall(self.taken + 1)
        if self.taken == self._count:
            if self._error is not None:
                raise self._error
            return None
        self.taken += 1
        return batch(self.taken)

    def cancel(self) -> None:
        self.cancelled.set()

    def _stall(self, number: int) -> None:
        if number == self._stalls_at:
            self.stalled.set()
            assert self.cancelled.wait(WAIT_S)
            raise ConnectionError("cancelled")


def ended(pump: BatchPump) -> bool:
    pump._thread.join(WAIT_S)
    return not pump._thread.is_alive()
