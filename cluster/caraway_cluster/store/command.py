"""`caraway store`: runs the chunk store until a signal stops it."""

import asyncio
import logging
import os
import signal
import socket

from caraway_cluster.store.application import StoreApplication
from caraway_cluster.store.chunk_folder import ChunkFolder
from caraway_core import ray_nodes
from caraway_core.errors import CarawayError
from caraway_core.process import logs, ready_pipe
from caraway_core.settings import StoreOptions
from caraway_serving import listeners
from caraway_serving.listeners import HttpServer

logger = logging.getLogger(__name__)
_GRACE_S = 30


def run(options: StoreOptions) -> int:
    """Serve until SIGTERM or SIGINT and return the exit code.

    Raises:
        CarawayError: the store cannot start.
    """
    token = ray_nodes.read_token(options.token_file)
    logs.configure(options.log_format)
    chunks = _open_folder(options)
    with listeners.bind(options.listen, "--listen") as listener:
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
    server = HttpServer(application, most_connections=options.most_connections, grace_s=_GRACE_S)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        # A second signal ends what is under way.
        loop.add_signal_handler(number, lambda: server.stop(now=server.should_exit))
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listener]))
            group.create_task(_announce(server, listener, options))
    finally:
        application.close()
    logger.info("store stopped")


async def _announce(server: HttpServer, listener: socket.socket, options: StoreOptions) -> None:
    await server.is_up.wait()
    address = listeners.bound_address(listener)
    logger.info("store is up", extra={"address": str(address), "dir": options.folder})
    ready_pipe.write(options.ready_fd, {"store": address})
