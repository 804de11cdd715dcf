"""`caraway store`: flags in, a store that serves until a signal ends it."""

import asyncio
import logging
import os
import signal
import socket

from caraway_cluster.store.application import Store
from caraway_cluster.store.shelf import Shelf
from caraway_core import logs, ray_nodes, ready_pipe
from caraway_core.errors import CarawayError
from caraway_core.settings import StoreOptions
from caraway_serving import listeners
from caraway_serving.listeners import HttpServer

logger = logging.getLogger(__name__)
_GRACE_S = 30


def run(options: StoreOptions) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code.

    Raises:
        CarawayError: it cannot start.
    """
    token = ray_nodes.read_token(options.token_file)
    logs.configure(options.log_format)
    shelf = _open(options)
    with listeners.bind(options.listen, "--listen") as listener:
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
    server = HttpServer(store, most_connections=options.most_connections, grace_s=_GRACE_S)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        # A second signal ends what is under way.
        loop.add_signal_handler(number, lambda: server.stop(now=server.should_exit))
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listener]))
            group.create_task(_announce(server, listener, options))
    finally:
        store.close()
    logger.info("store has stopped")


async def _announce(server: HttpServer, listener: socket.socket, options: StoreOptions) -> None:
    await server.is_up.wait()
    address = listeners.bound_address(listener)
    logger.info("store is up", extra={"address": str(address), "dir": options.folder})
    ready_pipe.write(options.ready_fd, {"store": address})
