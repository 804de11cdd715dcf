"""Serves an Arrow file from memory over Flight, with no engine: `python -m ... FILE`."""

import sys

import pyarrow as pa
from pyarrow import flight


class MemoryServer(flight.FlightServerBase):  # type: ignore[misc] # pyarrow has no types
    """Sends the same rows for every ticket."""

    def __init__(self, rows: pa.Table) -> None:
        super().__init__("grpc+tcp://127.0.0.1:0")
        self._rows = rows

    def do_get(
        self, _context: flight.ServerCallContext, _ticket: flight.Ticket
    ) -> flight.FlightDataStream:
        return flight.RecordBatchStream(self._rows)


def main(file: str) -> None:
    """Serve a file until the process is ended; print the port once it listens."""
    with pa.OSFile(file) as source, pa.ipc.open_stream(source) as reader:
        server = MemoryServer(reader.read_all())
    print(server.port, flush=True)
    server.serve()


if __name__ == "__main__":
    main(sys.argv[1])
