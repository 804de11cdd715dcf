"""`caraway head`: runs the Ray head until a signal stops it."""

import asyncio
import contextlib
import logging
import math
import signal
import socket
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import TypeVar

from caraway_core import ray_nodes
from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError
from caraway_core.process import logs, ready_pipe
from caraway_core.process.data_directory import DataDirectory
from caraway_core.ray_nodes import GcsStore, NodeFailedError, NodeOptions, RayNode
from caraway_core.ray_nodes.gcs_watch import Silence
from caraway_core.settings import Address, HeadOptions

logger = logging.getLogger(__name__)
_Result = TypeVar("_Result")
_DELAYS = Delays(1.0, 5.0)
_STEADY_S = 60.0
_FIRST_TRIES = 3
"""Tries of the first start. A wrong password fails each time, and must be reported."""
_REDIS_S = 120.0
"""The time for which the first start waits for Redis. In a new cluster Redis may have to wait for
its image and its volume, and the kubelet restarts a head that gave up with growing delays."""
ALIVE = "alive"
"""The file in the data directory that the liveness probe reads."""
_TOUCH_S = 2.0
_LOOK_S = 5.0
_STUCK_S = 60.0
"""The watch touches its file every 2 to 8 s."""


def run(options: HeadOptions) -> int:
    """Run a head until SIGTERM or SIGINT and return the exit code.

    Raises:
        CarawayError: the head cannot start, or Ray exited.
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
    """Run a node until a signal. A node whose state is in Redis is restarted when it exits."""
    alive = tasks.begin(keep_alive(options.data_dir / ALIVE))
    try:
        await _run(node_options, options)
    finally:
        alive.cancel()


async def _run(node_options: NodeOptions, options: HeadOptions) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    logger.info("head starting", extra={"address": str(options.address)})
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
            cause = await _unless(stop, _end(node, node_options.sign))
        finally:
            await node.stop()
        if cause is None:
            break
        message = f"{cause}; its output is in {node.output}"
        if node_options.store is None:
            raise NodeFailedError(message)
        # The state is in Redis, so the restarted head is the same head. Ray usually exits because
        # Redis did, or because its state server was silent (`ray_nodes.gcs_watch`).
        logger.warning("head restarting", extra={"cause": message})
        patience_s = math.inf
        if loop.time() - began > _STEADY_S:
            again.succeeded()
        await _unless(stop, asyncio.sleep(again.failed()))
    logger.info("head stopped")


async def _end(node: RayNode, sign: Path) -> str:
    """Wait until a node ends, or its watch hangs; return the cause."""
    ending, stuck = tasks.begin(node.wait()), tasks.begin(until_stuck(sign))
    try:
        await asyncio.wait((ending, stuck), return_when=asyncio.FIRST_COMPLETED)
        if ending.done():
            return f"Ray exited with code {ending.result()}"
        return "the watch of Ray's state server hangs"
    finally:
        ending.cancel()
        stuck.cancel()


async def _unless(stop: asyncio.Event, work: Coroutine[object, object, _Result]) -> _Result | None:
    """Return the result of the work, or None if the process is stopped first."""
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
    """Start a node once its Redis answers.

    Raises:
        CarawayError: Redis does not answer in time, or the first start failed several times.
    """
    again = Backoff(_DELAYS)
    while True:
        if options.store is not None:
            await wait_for(options.store, patience_s)
        try:
            return await RayNode.start(options)
        except NodeFailedError as exc:
            # Redis went away again, or the state server ended.
            delay_s = again.failed()
            if patience_s != math.inf and again.failures >= _FIRST_TRIES:
                raise
            logger.warning("head failed to start; retrying", extra={"cause": exc.message})
            await asyncio.sleep(delay_s)


async def wait_for(store: GcsStore, patience_s: float = _REDIS_S, delays: Delays = _DELAYS) -> None:
    """Wait for Redis, which may still be starting.

    Raises:
        CarawayError: it cannot be reached within `patience_s`.
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
                    "waiting for Redis", extra={"at_most_s": at_most_s, "cause": exc.message}
                )
        await asyncio.sleep(delay_s)


def _require_free(address: Address) -> None:
    """Check that the port is free, since Ray's own error does not name the port.

    Raises:
        CarawayError: the port is in use.
    """
    # Ray listens on all addresses of the host, whichever address it is given.
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", address.port))
        except OSError as exc:
            raise CarawayError(
                f"cannot listen on port {address.port}: {exc.strerror}; is another head running? "
                "choose another port with --address HOST:PORT"
            ) from exc


async def keep_alive(file: Path) -> None:
    """Touch a file until cancelled, for as long as the event loop runs."""
    while True:
        with contextlib.suppress(OSError):
            file.touch()  # noqa: ASYNC240 -- one touch; a slow disk is the sign of a hang
        await asyncio.sleep(_TOUCH_S)


async def until_stuck(
    sign: Path,
    clock: SecondsClock = time.monotonic,
    look_s: float = _LOOK_S,
    limit_s: float = _STUCK_S,
) -> None:
    """Wait until the watch that touches the file has not done so for some time."""
    silence, seen = Silence(limit_s), _touched(sign)
    while True:
        at = clock()
        await asyncio.sleep(look_s)
        now = _touched(sign)
        if now != seen:
            silence.answered()
            seen = now
        elif silence.failed(clock() - at):
            return


def _touched(sign: Path) -> int | None:
    try:
        return sign.stat().st_mtime_ns
    except OSError:
        return None
