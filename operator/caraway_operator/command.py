"""Runs the operator process: `caraway operator`."""

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
from caraway_operator import metrics, scheduler_client
from caraway_operator.kube import access, client
from caraway_operator.kube.lease import LeaderElection
from caraway_operator.operating import Operator
from caraway_operator.serving import serve_probes

logger = logging.getLogger(__name__)
LEASE = "caraway-operator"


def run(options: OperatorOptions) -> int:
    """Run the operator until SIGTERM or SIGINT. Returns the exit code.

    Raises:
        CarawayError: the API server cannot be reached, or the Lease was lost.
    """
    logs.configure(options.log_format)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        with suppress(asyncio.CancelledError):
            asyncio.run(serve(options))
    except BaseExceptionGroup as found:
        raise _first_error(found) from found
    return 0


async def serve(options: OperatorOptions) -> None:
    """Wait for the Lease, then run the operator."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Until kopf runs and handles the signals itself.
        loop.add_signal_handler(number, task.cancel)
    found = access.find_access(os.environ)
    identity = f"{options.identity or socket.gethostname()}_{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(client.open_client(found))
        schedulers = await stack.enter_async_context(scheduler_client.open_client())
        operator = Operator(
            found, kube, schedulers, identity, version("caraway"), tuple(options.namespaces)
        )
        election = LeaderElection(
            kube, options.lease_namespace or found.namespace, LEASE, identity, time.monotonic
        )
        listening = await stack.enter_async_context(
            serve_probes(
                options.listen,
                election.health_problem,
                lambda: metrics.render(operator.resources, operator.objects, kube, operator.stats),
            )
        )
        logger.info("operator started", extra={"identity": identity, "listen": str(listening)})
        async with election.hold_lease():
            operator.stats.is_leader = True
            await operator.run_operator()


def _first_error(found: BaseException) -> BaseException:
    """Return the first error of nested exception groups."""
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
