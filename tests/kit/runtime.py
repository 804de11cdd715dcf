"""Runs a whole runtime in the test: real manifest, sources and engine, without sockets."""

import asyncio
import textwrap
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from caraway_core import manifest as manifests
from caraway_core.ids import new_query_id
from caraway_core.process.data_directory import DataDirectory
from caraway_core.statements import Statement
from caraway_gateway.composition import app, assembly, security
from caraway_gateway.composition import backend as backends
from caraway_gateway.composition.backend import Backend
from caraway_gateway.services import Services
from caraway_serving.tallies import ApiTallies
from tests.kit.engine_processes import fork_server

BASE = "http://caraway.test"


@dataclass(frozen=True, slots=True)
class Running:
    """The runtime under test, with a client of its API and one of its metrics port."""

    services: Services
    api: httpx.AsyncClient
    metrics: httpx.AsyncClient

    async def sql(self, sql: str, accept: str = "application/json", **headers: str) -> Any:
        """Post a statement as text."""
        return await self.api.post(
            "/v1/sql",
            content=sql.encode(),
            headers={"content-type": "text/plain", "accept": accept, **headers},
        )

    async def own(self, sql: str) -> list[dict[str, Any]]:
        """Run a statement of the runtime itself, which may name the sources of datasets."""
        stream = await self.services.dispatch.execute(new_query_id(), Statement(sql, {}))
        return [row async for batch in stream for row in batch.to_pylist()]


@asynccontextmanager
async def running(
    folder: Path,
    manifest: str,
    environ: dict[str, str] | None = None,
    backend: Backend | None = None,
    before: Callable[[Services], None] = lambda _services: None,
    altered: Callable[[Services], Services] = lambda services: services,
) -> AsyncIterator[Running]:
    """Write the manifest to the folder, and serve it until the block ends.

    `before` may change the services before any dataset is loaded. `altered` may replace them for
    the API and the metrics.
    """
    path = folder / "caraway.yaml"
    path.write_text("version: v1\nkind: Caraway\nname: test\n" + textwrap.dedent(manifest))
    loaded = manifests.load(path)
    secrets = manifests.build_resolver(loaded, environ or {})
    async with AsyncExitStack() as stack:
        data = stack.enter_context(DataDirectory(folder / "data-dir"))
        backend = backend or backends.standalone(loaded, data, stack, fork_server())
        services = await assembly.services(loaded, secrets, data, ApiTallies(), stack, backend)
        before(services)
        jobs = services.jobs
        working = asyncio.create_task(jobs.run_jobs())
        stack.push_async_callback(_ended, working)
        following = asyncio.create_task(services.accelerations.run())
        stack.push_async_callback(_ended, following)
        services.functions.apply(loaded)
        services.tools.apply(loaded, secrets)
        await services.models.apply(loaded, secrets)
        services.rerankers.apply(loaded, secrets)
        await services.catalog.apply(loaded, secrets)
        services.workers.apply(loaded)
        await services.catalog.wait_settled()
        await services.models.wait_settled()
        await services.embeddings.wait_settled()
        jobs.begin_jobs()
        services = altered(services)
        origins = security.cors_origins(loaded.runtime)
        has_console = loaded.runtime.console.enabled
        served = app.build_api(services, origins, has_console=has_console)
        api = await stack.enter_async_context(_client(served))
        metrics = await stack.enter_async_context(_client(app.build_metrics(services)))
        yield Running(services, api, metrics)
        services.queries.active.stop_all("shutdown")
        await jobs.stop(0)


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait((task,))


def _client(application: Any) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(application, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=BASE, timeout=60)
