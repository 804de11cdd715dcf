"""Runs the operator process: `caraway operator`."""

import asyncio
import logging
import os
import signal
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.metadata import version

from aiohttp import web

from caraway_core.errors import CarawayError
from caraway_core.process import logs
from caraway_core.settings import Address, OperatorOptions
from caraway_kube.api import access, client
from caraway_kube.naming import OPERATOR
from caraway_operator import metrics, scheduler_client
from caraway_operator.kube.lease import LeaderElection
from caraway_operator.metrics import CONTENT_TYPE
from caraway_operator.operating import Operator

logger = logging.getLogger(__name__)


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
    api_access = access.find_access(os.environ)
    identity = f"{options.identity or socket.gethostname()}_{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(client.open_client(api_access, OPERATOR))
        schedulers = await stack.enter_async_context(scheduler_client.open_client())
        operator = Operator(
            api_access, kube, schedulers, identity, version("caraway"), tuple(options.namespaces)
        )
        election = LeaderElection(
            kube,
            options.lease_namespace or api_access.namespace,
            OPERATOR,
            identity,
            time.monotonic,
        )
        listening = await stack.enter_async_context(
            _serve_probes(
                options.listen,
                election.health_problem,
                lambda: metrics.render(operator.resources, operator.objects, kube, operator.stats),
            )
        )
        logger.info("operator started", extra={"identity": identity, "listen": str(listening)})
        async with election.hold_lease():
            operator.stats.is_leader = True
            await operator.run_operator()


@asynccontextmanager
async def _serve_probes(
    address: Address, health_problem: Callable[[], str], metrics: Callable[[], bytes]
) -> AsyncIterator[Address]:
    """Serve `/healthz`, the liveness probe, and `/metrics`.

    `health_problem` returns why the process is unhealthy, or ''. The operator works in the same
    event loop, so the probe fails if the loop hangs.

    Raises:
        CarawayError: the address cannot be bound.
    """

    async def health(_: web.Request) -> web.Response:
        reason = health_problem()
        return web.Response(text=reason or "ok", status=503 if reason else 200)

    async def page(_: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.router.add_get("/healthz", health)
    app.router.add_get("/metrics", page)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address.host, address.port)
        try:
            await site.start()
        except OSError as exc:
            raise CarawayError(
                f"cannot listen on {address}: {exc.strerror}; choose another address with "
                "--listen HOST:PORT"
            ) from exc
        host, port = runner.addresses[0][:2]
        yield Address(host, port)
    finally:
        await runner.cleanup()


def _first_error(base_exception: BaseException) -> BaseException:
    """Return the first error of nested exception groups."""
    while isinstance(base_exception, BaseExceptionGroup):
        base_exception = base_exception.exceptions[0]
    return base_exception
