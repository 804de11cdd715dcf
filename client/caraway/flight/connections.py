"""Connections to Flight servers, and the errors of Arrow as those of this library."""

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import flight

from caraway.errors import ApiError, BrokenResponseError, InvalidEndpointError, UnreachableError
from caraway.flight import bound_rows
from caraway.flight import feeds as flight_feeds
from caraway.flight.prepared import PreparedPool, close_all
from caraway.flight.pumps import BatchPump
from caraway.requests.addresses import FlightAddress, parse_flight_url
from caraway.requests.arguments import Parameters
from caraway_core.errors import CarawayError

CONNECT_TIMEOUT_S = 5.0
_REUSE = "arrow-flight-reuse-connection:"
# Order matters: the classes of pyarrow derive from one another.
_STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (flight.FlightUnauthenticatedError, 401),
    (flight.FlightUnauthorizedError, 403),
    (flight.FlightTimedOutError, 504),
    (flight.FlightCancelledError, 499),
    (flight.FlightUnavailableError, 503),
    (pa.ArrowNotImplementedError, 501),
    (pa.ArrowKeyError, 404),
    (pa.ArrowInvalid, 400),
    (flight.FlightInternalError, 500),
    (flight.FlightServerError, 500),
)
_NOT_OF_THE_SERVER = re.compile(
    r"(?:\. gRPC client debug context: .*|\. Client context: .*|\. Detail: [^.]*)\Z", re.DOTALL
)
_CODE_OF_GRPC = re.compile(r"\A(?:Flight|gRPC) returned [\w -]+ error, with message: ")
_OF_TLS = re.compile("handshak|certificate", re.IGNORECASE)
_OF_THE_CONNECTION = re.compile(
    r"failed to connect|connection (?:refused|reset|closed|timed out)|socket closed|"
    r"broken pipe|goaway|handshak|stream removed|connection dropped|rst_stream|"
    r"transport closed|endpoint closing|recvmsg|recv:|eof",
    re.IGNORECASE,
)


class FlightTransport:
    """A connection to one Flight server and, if it names others, to those."""

    def __init__(
        self,
        address: FlightAddress,
        api_key: str,
        tls_root_cert: Path | None,
        user_agent: str,
        client_cert: tuple[Path, Path] | None = None,
    ) -> None:
        self.address = address
        self._headers = [(b"authorization", f"Bearer {api_key}".encode())] if api_key else []
        self._tls = _tls_options(tls_root_cert, client_cert) if address.is_secure else {}
        self._user_agent = user_agent
        self._clients: dict[FlightAddress, Any] = {}
        self._prepared = PreparedPool()
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def thread_name(self) -> str:
        """The name of the threads that read from this server."""
        return f"caraway-flight-{self.address.host}"

    def open(
        self,
        sql: str,
        timeout_s: float | None = None,
        parameters: Parameters | None = None,
    ) -> BatchPump:
        """Begin a statement. Its batches and errors come from the pump.

        Raises:
            ParametersError: a value cannot be sent.
        """
        if not parameters:
            return BatchPump(flight_feeds.of_text(self, sql, timeout_s), self.thread_name)
        row = bound_rows.row(parameters)
        feed = flight_feeds.of_bound(self, self._prepared, sql, row, timeout_s)
        return BatchPump(feed, self.thread_name)

    def open_query(self, query_id: str) -> BatchPump:
        """Begin to read the rows of a finished asynchronous query."""
        return BatchPump(flight_feeds.of_query(self, query_id), self.thread_name)

    def act(self, name: str, body: bytes, timeout_s: float | None = None) -> bytes:
        """Send an action, and return the bodies of its results one after the other."""
        with self.mapped_errors():
            client = self.connect(self.address)
            results = client.do_action(flight.Action(name, body), self.options(timeout_s))
            return b"".join(each.body.to_pybytes() for each in results)

    @contextlib.contextmanager
    def mapped_errors(self, at: FlightAddress | None = None) -> Iterator[None]:
        """Raise errors of Arrow as those of this library, and forget broken connections."""
        address = at or self.address
        try:
            yield
        except (pa.ArrowException, flight.FlightError, OSError) as exc:
            error = translate(exc, address)
            if isinstance(error, UnreachableError | BrokenResponseError):
                self.forget(address)
            raise error from exc

    def connect(self, address: FlightAddress) -> Any:
        """Return the connection to an address.

        Raises:
            UnreachableError: no server listens there.
        """
        with self._lock:
            if self._is_closed:
                raise CarawayError("the client is closed")
            if address in self._clients:
                return self._clients[address]
        # gRPC retries for a long time and says little; a socket of our own is quick and clear.
        _check_listening(address)
        client = flight.FlightClient(
            address.location,
            generic_options=[
                ("grpc.primary_user_agent", self._user_agent),
                # Each client has its own sockets, which end with it.
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1000),
            ],
            **(self._tls if address.is_secure else {}),
        )
        with self._lock:
            if self._is_closed:
                client.close()
                raise CarawayError("the client is closed")
            return self._clients.setdefault(address, client)

    def options(self, timeout_s: float | None) -> Any:
        """Return the options of one call."""
        return flight.FlightCallOptions(timeout=timeout_s, headers=self._headers)

    def choose(self, locations: list[Any]) -> list[FlightAddress]:
        """Return where an endpoint can be read; without locations that is the server itself.

        Raises:
            BrokenResponseError: no location can be used, as by TLS where we use it.
        """
        if not locations:
            return [self.address]
        found = []
        for location in locations:
            uri = location.uri.decode()
            if uri.startswith(_REUSE):
                found.append(self.address)
                continue
            with contextlib.suppress(InvalidEndpointError):
                address = parse_flight_url(uri)
                if address.is_secure or not self.address.is_secure:
                    found.append(address)
        if not found:
            raise BrokenResponseError(f"the server named no location that can be used: {locations}")
        return found

    def forget(self, address: FlightAddress) -> None:
        """Close a broken connection; the next statement makes a new one."""
        with self._lock:
            client = self._clients.pop(address, None)
        if client is not None:
            client.close()

    def close(self) -> None:
        """Close all connections. The transport cannot be used afterwards."""
        with self._lock:
            self._is_closed = True
            clients, self._clients = self._clients, {}
        if self.address in clients:
            close_all(clients[self.address], self._headers, self._prepared.clear())
        for client in clients.values():
            client.close()


def translate(exc: Exception, address: FlightAddress) -> CarawayError:
    """Return the error of this library for one of Arrow's."""
    text = _NOT_OF_THE_SERVER.sub("", _CODE_OF_GRPC.sub("", str(exc)))
    text = _NOT_OF_THE_SERVER.sub("", text)
    status = next((status for kind, status in _STATUSES if isinstance(exc, kind)), 0)
    is_lost = status in (0, 500, 503) and _OF_THE_CONNECTION.search(str(exc)[:2000])
    if status == 503 and _OF_TLS.search(str(exc)[:2000]):
        return UnreachableError(address.location, text)
    if status == 503 and is_lost:
        return BrokenResponseError(
            f"the connection to {address.location} is lost: {text}; run the statement again"
        )
    if not status:
        return BrokenResponseError(f"the response of {address.location} is unreadable: {text}")
    return ApiError(status, text, is_structured=True)


def _check_listening(address: FlightAddress) -> None:
    try:
        socket.create_connection((address.host, address.port), CONNECT_TIMEOUT_S).close()
    except OSError as exc:
        raise UnreachableError(address.location, str(exc) or type(exc).__name__) from exc


def _tls_options(root_cert: Path | None, client_cert: tuple[Path, Path] | None) -> dict[str, bytes]:
    options = {"tls_root_certs": _contents(root_cert)} if root_cert is not None else {}
    if client_cert is not None:
        options |= {
            "cert_chain": _contents(client_cert[0]),
            "private_key": _contents(client_cert[1]),
        }
    return options


def _contents(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as exc:
        raise CarawayError(f"cannot load the certificate '{file}': {exc}") from exc
