"""`caraway store`: runs the chunk store until a signal stops it."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Iterator

import uvicorn

from caraway_cluster.store.application import StoreApplication
from caraway_cluster.store.chunk_folder import ChunkFolder
from caraway_core import logs, ray_nodes, ready_pipe
from caraway_core.errors import CarawayError
from caraway_core.settings import Address, StoreOptions

logger = logging.getLogger(__name__)
_BACKLOG = 1024
_KEEP_ALIVE_S = 75
_GRACE_S = 30


def run(options: StoreOptions) -> int:
    """Serve until SIGTERM or SIGINT and return the exit code.

    Raises:
        CarawayError: the store cannot start.
    """
    token = ray_nodes.read_token(options.token_file)
    logs.configure(options.log_format)
    chunks = _open_folder(options)
    with _listen(options.listen) as listener:
        application = StoreApplication(
            chunks, token, options.most_bytes, has_metrics=options.has_metrics
        )
        asyncio.run(_serve(application, listener, options))
    return 0


def _open_folder(options: StoreOptions) -> ChunkFolder:
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        chunks = ChunkFolder(options.folder)
        chunks.check_writable()
    except OSError as exc:
        raise CarawayError(
            f"cannot store chunks in '{options.folder}': {exc.strerror}; check that user "
            f"{os.geteuid()} can write there and that there is free space, or choose another "
            "directory with --dir DIR"
        ) from exc
    if chunks.orphans:
        logger.info("unfinished chunks removed", extra={"count": chunks.orphans})
    return chunks


async def _serve(
    application: StoreApplication, listener: socket.socket, options: StoreOptions
) -> None:
    config = uvicorn.Config(
        application,
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
        loop.add_signal_handler(number, server.stop)
    try:
        await server.serve(sockets=[listener])
    finally:
        application.close()
    logger.info("store stopped")


class _Server(uvicorn.Server):
    """A uvicorn server without its own signal handlers that reports when it has started."""

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

    def stop(self) -> None:
        """Finish running requests and exit; a second call aborts them."""
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
