"""What `caraway operator` does, behind its flags."""

import asyncio
import logging
import os
import signal
import socket
import time
import uuid
from contextlib import AsyncExitStack, suppress
from importlib.metadata import version

from caraway_core import logs
from caraway_core.settings import OperatorOptions
from caraway_operator import metrics, scheduler_link
from caraway_operator.kube import access, client
from caraway_operator.kube.lease import Election
from caraway_operator.operating import Operator
from caraway_operator.serving import served

logger = logging.getLogger(__name__)
LEASE = "caraway-operator"


def run(options: OperatorOptions) -> int:
    """Look after clusters until SIGTERM or SIGINT; returns the exit code.

    Raises:
        CarawayError: the API cannot be reached, or another operator took over.
    """
    logs.configure(options.log_format)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        with suppress(asyncio.CancelledError):
            asyncio.run(serve(options))
    except BaseExceptionGroup as found:
        raise _first(found) from found
    return 0


async def serve(options: OperatorOptions) -> None:
    """Wait until this operator may act, and act."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Until kopf runs, and takes the signals itself.
        loop.add_signal_handler(number, task.cancel)
    found = access.find(os.environ)
    identity = f"{options.identity or socket.gethostname()}_{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(client.connected(found))
        link = await stack.enter_async_context(scheduler_link.connected())
        operator = Operator(
            found, kube, link, identity, version("caraway"), tuple(options.namespaces)
        )
        election = Election(
            kube, options.lease_namespace or found.namespace, LEASE, identity, time.monotonic
        )
        listening = await stack.enter_async_context(
            served(
                options.listen,
                election.ailment,
                lambda: metrics.render(operator.known, operator.objects, kube, operator.tallies),
            )
        )
        logger.info("operator started", extra={"identity": identity, "listen": str(listening)})
        async with election.held():
            operator.tallies.is_leader = True
            await operator.run()


def _first(found: BaseException) -> BaseException:
    """Return what went wrong, without the groups of tasks that it went wrong in."""
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
