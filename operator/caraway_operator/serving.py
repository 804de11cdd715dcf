"""Serves the operator's liveness probe and metrics."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from caraway_core.errors import CarawayError
from caraway_core.settings import Address
from caraway_operator.metrics import CONTENT_TYPE


@asynccontextmanager
async def serve_probes(
    address: Address, health_problem: Callable[[], str], metrics: Callable[[], bytes]
) -> AsyncIterator[Address]:
    """Serve `/healthz` and `/metrics`.

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
