"""`caraway head`: the Ray head, watched until a signal ends it."""

import asyncio
import logging
import signal
import socket
import time

from caraway_core import logs, ray_nodes, ready_pipe
from caraway_core.data_directory import DataDirectory
from caraway_core.errors import CarawayError
from caraway_core.ray_nodes import GcsStore, Node, NodeFailedError, NodeOptions
from caraway_core.settings import Address, HeadOptions

logger = logging.getLogger(__name__)
_REDIS_S = 120.0
"""Where both are new the Redis may need an image and a volume first, and kubelets start a head that
ended meanwhile later and later."""


def run(options: HeadOptions) -> int:
    """Keep a head until SIGTERM or SIGINT; returns the exit code.

    Raises:
        CarawayError: it cannot start, or Ray ended.
    """
    ray_nodes.require()
    _require_free(options.address)
    logs.configure(options.log_format)
    store = GcsStore.parse(options.state) if options.state else None
    with DataDirectory(options.data_dir) as data:
        token_file = options.token_file
        if token_file is None:
            token_file = data.path / "token"
            ray_nodes.make_token(token_file)
        ray_nodes.read_token(token_file)
        node = NodeOptions(
            head=options.address,
            joins=False,
            node_ip=options.address.host,
            cores=0,
            object_store_bytes=0,
            folder=data.path / "ray",
            token_file=token_file,
            store=store,
        )
        asyncio.run(_serve(node, options))
    return 0


async def _serve(node_options: NodeOptions, options: HeadOptions) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    logger.info("head starts", extra={"address": str(options.address)})
    stopping = asyncio.ensure_future(stop.wait())
    starting = asyncio.ensure_future(_start(node_options))
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait((starting,))
        return
    node = await starting
    logger.info("head is up", extra={"token_file": str(node_options.token_file)})
    ready_pipe.write(
        options.ready_fd, {"address": options.address, "token_file": node_options.token_file}
    )
    ending = asyncio.ensure_future(node.wait())
    try:
        await asyncio.wait((ending, stopping), return_when=asyncio.FIRST_COMPLETED)
        if ending.done() and not stop.is_set():
            raise NodeFailedError(
                f"Ray ended with exit code {ending.result()}; what it printed is in {node.output}"
            )
    finally:
        stopping.cancel()
        ending.cancel()
        await node.stop()
    logger.info("head has stopped")


async def _start(options: NodeOptions) -> Node:
    if options.store is not None:
        await wait_for(options.store)
    return await Node.start(options)


async def wait_for(store: GcsStore, patience_s: float = _REDIS_S, pause_s: float = 1.0) -> None:
    """Wait for the Redis, which may be starting as well.

    Raises:
        CarawayError: it cannot be reached for so long.
    """
    deadline = time.monotonic() + patience_s
    is_first = True
    while True:
        try:
            return await asyncio.to_thread(store.require)
        except CarawayError as exc:
            if time.monotonic() + pause_s > deadline:
                raise
            if is_first:
                logger.warning(
                    "waits for the Redis", extra={"at_most_s": patience_s, "cause": exc.message}
                )
            is_first = False
        await asyncio.sleep(pause_s)


def _require_free(address: Address) -> None:
    """Refuse a port that is taken, in better words than Ray's.

    Raises:
        CarawayError: something listens there.
    """
    # Ray listens on every address of the host, whichever it is given.
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", address.port))
        except OSError as exc:
            raise CarawayError(
                f"cannot listen on port {address.port}: {exc.strerror}; is another head up? "
                "choose another port with --address HOST:PORT"
            ) from exc
