"""A fake Flight server that follows the script of a test and records the calls."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import flight

from tests.client import flight_sql

SCHEMA = pa.schema([pa.field("n", pa.int64())])
# Yields the batches of one statement; may raise.
Script = Callable[[], Iterator[pa.RecordBatch]]


def numbers(start: int, count: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(range(start, start + count), pa.int64())], schema=SCHEMA)


def one_batch() -> Iterator[pa.RecordBatch]:
    yield numbers(0, 3)


class Headers(flight.ServerMiddlewareFactory):  # type: ignore[misc] # pyarrow has no types
    """Records what clients send."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def start_call(self, info: flight.CallInfo, headers: dict[str, Any]) -> None:
        self.seen.append(headers)


class FakeFlight(flight.FlightServerBase):  # type: ignore[misc] # pyarrow has no types
    """Runs the scripts in order and repeats the last one. `asked` has the statements."""

    def __init__(self, location: str, tls: tuple[bytes, bytes] | None, headers: Headers) -> None:
        super().__init__(
            location, tls_certificates=[tls] if tls else None, middleware={"headers": headers}
        )
        self.headers = headers
        self.scripts: list[Script] = [one_batch]
        self.refusals: list[Exception] = []
        """What GetFlightInfo raises, one for each call."""
        self.total_records = -1
        self.endpoints: dict[str, Script] = {}
        """The endpoints of every answer by their tickets, instead of one."""
        self.is_ordered = False
        self.metadata = b""
        """What each FlightInfo says besides."""
        self.prepared: dict[bytes, str] = {}
        self.bound: dict[bytes, dict[str, Any]] = {}
        self.actions: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []
        self.cancelled = threading.Event()

    def get_flight_info(self, context: Any, descriptor: flight.FlightDescriptor) -> Any:
        command = descriptor.command or b"/".join(descriptor.path)
        self.asked.append(("info", self._text(command)))
        if self.refusals:
            raise self.refusals.pop(0)
        names = [name.encode() for name in self.endpoints] or [command]
        endpoints = [flight.FlightEndpoint(name, []) for name in names]
        return flight.FlightInfo(
            SCHEMA,
            descriptor,
            endpoints,
            self.total_records,
            -1,
            self.is_ordered,
            app_metadata=self.metadata,
        )

    def do_action(self, context: Any, action: flight.Action) -> Any:
        body = action.body.to_pybytes()
        if action.type == flight_sql.CREATE:
            handle = f"handle {len(self.asked)}".encode()
            self.prepared[handle] = flight_sql.content(body).decode()
            self.asked.append(("prepare", self.prepared[handle]))
            return [flight_sql.prepared_answer(handle)]
        if action.type == flight_sql.CLOSE:
            self.asked.append(("close", self.prepared.pop(flight_sql.content(body))))
            return []
        self.asked.append((action.type, body.decode()))
        return [self.actions[action.type]]

    def do_put(
        self, context: Any, descriptor: flight.FlightDescriptor, reader: Any, writer: Any
    ) -> None:
        handle = flight_sql.content(descriptor.command)
        self.asked.append(("bind", self._text(descriptor.command)))
        (self.bound[handle],) = reader.read_all().to_pylist()

    def _text(self, command: bytes) -> str:
        if command.startswith(b"\xff"):
            with pa.ipc.open_stream(command) as reader:
                return f"{reader.schema.metadata[b'caraway.sql'].decode()} {reader.read_all()[0]}"
        handle = flight_sql.content(command)
        if not handle:
            return command.decode()
        if handle not in self.prepared:
            raise KeyError("there is no such prepared statement")
        return self.prepared[handle]

    def do_get(self, context: Any, ticket: flight.Ticket) -> flight.FlightDataStream:
        text = self._text(ticket.ticket)
        self.asked.append(("get", text))
        script = self.endpoints.get(text) or (
            self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        )

        def watched() -> Iterator[pa.RecordBatch]:
            try:
                for batch in script():
                    if context.is_cancelled():
                        self.cancelled.set()
                        return
                    yield batch
            except GeneratorExit:
                # The batch on its way could not be sent, so that no other is asked for.
                self.cancelled.set()
                raise

        return flight.GeneratorStream(SCHEMA, watched())

    @property
    def url(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"


@contextmanager
def flight_running(tls: tuple[bytes, bytes] | None = None, port: int = 0) -> Iterator[FakeFlight]:
    """Run a fake server until the block ends."""
    scheme = "grpc+tls" if tls else "grpc+tcp"
    with FakeFlight(f"{scheme}://127.0.0.1:{port}", tls, Headers()) as server:
        yield server


@contextmanager
def held_port() -> Iterator[int]:
    """Yield a port that refuses connections: it is bound, but nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
