"""`caraway head`: the Ray head, watched until a signal ends it."""

import asyncio
import logging
import math
import signal
import socket
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from caraway_core import logs, ray_nodes, ready_pipe, tasks
from caraway_core.backoff import Backoff, Delays
from caraway_core.data_directory import DataDirectory
from caraway_core.errors import CarawayError
from caraway_core.ray_nodes import GcsStore, NodeFailedError, NodeOptions, RayNode
from caraway_core.settings import Address, HeadOptions

logger = logging.getLogger(__name__)
_Result = TypeVar("_Result")
_DELAYS = Delays(1.0, 5.0)
_STEADY_S = 60.0
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
    """Keep a node until a signal; one that ends with its Redis is started again beside it."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    logger.info("head starts", extra={"address": str(options.address)})
    patience_s, ready_fd, again = _REDIS_S, options.ready_fd, Backoff(_DELAYS)
    while not stop.is_set():
        node = await _unless(stop, _start(node_options, patience_s))
        if node is None:
            return
        began = loop.time()
        try:
            logger.info("head is up", extra={"token_file": str(node_options.token_file)})
            facts = {"address": options.address, "token_file": node_options.token_file}
            ready_pipe.write(ready_fd, facts)
            ready_fd = None
            code = await _unless(stop, node.wait())
        finally:
            await node.stop()
        if code is None:
            break
        message = f"Ray ended with exit code {code}; what it printed is in {node.output}"
        if node_options.store is None:
            raise NodeFailedError(message)
        # Its state is in the Redis, whose end is the usual reason: it goes on as the same head.
        logger.warning("head starts again", extra={"cause": message})
        patience_s = math.inf
        if loop.time() - began > _STEADY_S:
            again.succeeded()
        await _unless(stop, asyncio.sleep(again.failed()))
    logger.info("head has stopped")


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, _Result]) -> _Result | None:
    """Return what the work does; None if the process was told to stop before."""
    working, stopping = tasks.begin(work), tasks.begin(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        working.cancel()
        await asyncio.wait((working,))
        return None
    finally:
        stopping.cancel()


async def _start(options: NodeOptions, patience_s: float) -> RayNode:
    """Start a node once its Redis is there.

    Raises:
        CarawayError: the Redis is not there in time, or the first start fails.
    """
    again = Backoff(_DELAYS)
    while True:
        if options.store is not None:
            await wait_for(options.store, patience_s)
        try:
            return await RayNode.start(options)
        except NodeFailedError as exc:
            if patience_s != math.inf:
                raise
            # The Redis went again, or still loads what it holds.
            logger.warning("head does not start yet", extra={"cause": exc.message})
            await asyncio.sleep(again.failed())


async def wait_for(store: GcsStore, patience_s: float = _REDIS_S, delays: Delays = _DELAYS) -> None:
    """Wait for the Redis, which may be starting as well.

    Raises:
        CarawayError: it cannot be reached for so long.
    """
    deadline, again = time.monotonic() + patience_s, Backoff(delays)
    while True:
        try:
            return await asyncio.to_thread(store.require)
        except CarawayError as exc:
            is_first, delay_s = not again.failures, again.failed()
            if time.monotonic() + delay_s > deadline:
                raise
            if is_first:
                at_most_s = None if patience_s == math.inf else patience_s
                logger.warning(
                    "waits for the Redis", extra={"at_most_s": at_most_s, "cause": exc.message}
                )
        await asyncio.sleep(delay_s)


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
