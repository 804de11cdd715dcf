"""`caraway store`: flags in, a store that serves until a signal ends it."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Iterator

import uvicorn

from caraway_cluster.store.application import Store
from caraway_cluster.store.shelf import Shelf
from caraway_core import logs, ray_nodes, ready_pipe
from caraway_core.errors import CarawayError
from caraway_core.settings import Address, StoreOptions

logger = logging.getLogger(__name__)
_BACKLOG = 1024
_KEEP_ALIVE_S = 75
_GRACE_S = 30


def run(options: StoreOptions) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code.

    Raises:
        CarawayError: it cannot start.
    """
    token = ray_nodes.read_token(options.token_file)
    logs.configure(options.log_format)
    shelf = _open(options)
    with _listen(options.listen) as listener:
        asyncio.run(_serve(Store(shelf, token, options.most_bytes,
                                 has_metrics=options.has_metrics), listener, options))  # fmt: skip
    return 0


def _open(options: StoreOptions) -> Shelf:
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        shelf = Shelf(options.folder)
        shelf.try_out()
    except OSError as exc:
        raise CarawayError(
            f"cannot keep chunks in '{options.folder}': {exc.strerror}; give user {os.geteuid()} "
            "the right to write there and check the space, or choose another folder with --dir DIR"
        ) from exc
    if shelf.orphans:
        logger.info("unfinished chunks removed", extra={"count": shelf.orphans})
    return shelf


async def _serve(store: Store, listener: socket.socket, options: StoreOptions) -> None:
    config = uvicorn.Config(
        store,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=options.most_connections,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = _Server(config, listener, options)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.end)
    try:
        await server.serve(sockets=[listener])
    finally:
        store.close()
    logger.info("store has stopped")


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to the process and says when it has started."""

    def __init__(
        self, config: uvicorn.Config, listener: socket.socket, options: StoreOptions
    ) -> None:
        super().__init__(config)
        self._listener = listener
        self._options = options

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        address = Address(*self._listener.getsockname()[:2])
        logger.info("store is up", extra={"address": str(address), "dir": self._options.folder})
        ready_pipe.write(self._options.ready_fd, {"store": address})

    def end(self) -> None:
        """Let what is under way finish; asked twice, break it off."""
        self.force_exit = self.should_exit
        self.should_exit = True


def _listen(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
        listener.listen(_BACKLOG)
    except OSError as exc:
        listener.close()
        raise CarawayError(
            f"cannot listen on {address}: {exc.strerror}; choose another address with "
            "--listen HOST:PORT"
        ) from exc
    return listener
