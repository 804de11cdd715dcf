"""Creates the sockets and HTTP servers of a process; installs no signal handlers."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from caraway_core.errors import CarawayError
from caraway_core.settings import Address
from caraway_serving import http_connections
from caraway_serving.http_connections import BoundedProtocol

_KEEP_ALIVE_S = 75
_GRACE_S = 2
_BACKLOG = 1024
_HEAD_TIMEOUT_S = 20.0
_MOST_CONNECTIONS = 4096


def bind(address: Address, flag: str) -> socket.socket:
    """Listen on an address; port 0 selects a free port.

    Raises:
        CarawayError: the address is in use, or not available on this host.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # Without the protocol, the event loop of asyncio leaves Nagle's algorithm on: an answer that is
    # written in two pieces then waits 40 ms for the client's acknowledgement of the first.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
        listener.listen(_BACKLOG)
    except OSError as exc:
        listener.close()
        raise CarawayError(
            f"cannot listen on {address}: {exc.strerror}; stop what listens there, or choose "
            f"another address with {flag} HOST:PORT"
        ) from exc
    listener.setblocking(False)
    return listener


def bound_address(listener: socket.socket) -> Address:
    """Return the address that a socket is bound to."""
    host, port = listener.getsockname()[:2]
    return Address(host, port)


class HttpServer(uvicorn.Server):
    """A uvicorn server that installs no signal handlers, and reports when it has started."""

    def __init__(
        self,
        app: ASGIApp,
        context: ssl.SSLContext | None = None,
        *,
        most_connections: int = _MOST_CONNECTIONS,
        most_of_address: int | None = None,
        head_timeout_s: float = _HEAD_TIMEOUT_S,
        grace_s: int = _GRACE_S,
    ) -> None:
        """Take how long answers under way may still take after `stop`."""
        self._is_leaving = False
        self.quota = http_connections.quota(most_connections, most_of_address)
        config = uvicorn.Config(
            app,
            http=http_connections.bounded(  # type: ignore[arg-type] # it makes protocols, as the class does
                self.quota, head_timeout_s, lambda: self._is_leaving
            ),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=grace_s,
            # uvicorn serves TLS if its configuration creates a context.
            ssl_context_factory=(lambda _config, _default: context) if context else None,
            ssl_certfile="(the context has it)" if context else None,
        )
        super().__init__(config)
        self.is_up = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()

    def leave(self) -> None:
        """Serve on, and announce with each response that its connection closes."""
        self._is_leaving = True
        for connection in self.server_state.connections:
            cast(BoundedProtocol, connection).announce_close()

    def drain(self) -> None:
        """Close idle connections now, and busy ones after their current request."""
        self.leave()
        for connection in list(self.server_state.connections):
            connection.shutdown()

    def stop(self, *, now: bool = False) -> None:
        """Shut the server down; with `now`, without waiting for requests."""
        self.should_exit = True
        self.force_exit = self.force_exit or now
