"""One standalone runtime from start to stop."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from caraway_core import manifest as manifests
from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError
from caraway_core.manifest import Manifest, SecretResolver
from caraway_core.process import exiting, ready_pipe
from caraway_core.process.data_directory import DataDirectory
from caraway_core.settings import Address, RunOptions, SchedulerOptions
from caraway_gateway.composition import app, assembly, backend, security
from caraway_gateway.composition.announcing import Announcer
from caraway_gateway.composition.backend import Backend
from caraway_gateway.composition.key_reloading import KeyReloader
from caraway_gateway.composition.limits_file import LimitsFile
from caraway_gateway.composition.reloading import Reloader
from caraway_gateway.metrics import sampling
from caraway_gateway.services import Services
from caraway_scheduler.history import recent
from caraway_serving import listeners
from caraway_serving.listeners import HttpServer
from caraway_serving.tallies import ApiTallies
from caraway_serving.tls import Certificate

if TYPE_CHECKING:
    # Its gRPC stack is slow to load.
    from caraway_gateway.flight import FlightEndpoint

logger = logging.getLogger(__name__)
_CERTIFICATE_CHECK_S = 2.0
_FLIGHT_STOP_S = 2.0
_END_S = 15.0
_ALONE_S = 4.0
"""Time limits of the end once no work is left, with the head and without."""
Keeper = Callable[[], Coroutine[Any, Any, None]]


class Runtime:
    """A process that serves one manifest until a signal ends it, alone or in a cluster."""

    def __init__(
        self,
        options: RunOptions,
        manifest: Manifest,
        joining: SchedulerOptions | None = None,
        engines: object = None,
    ) -> None:
        """Take what starts engine processes, if that was begun before."""
        self._engines = engines
        self._options = options
        self._joining = joining
        self._manifest = manifest
        self._announcer = Announcer(sys.stdout if options.log_format == "text" else None)
        self._servers: list[HttpServer] = []
        self._flight: FlightEndpoint | None = None
        self.bound_end: Callable[[float, int], object] = lambda _within_s, _code: None
        """Ends the process after so long with a code; not where it is somebody else's."""
        self.on_up: Callable[[], object] = lambda: None
        """Called once everything is up."""
        self._stop_requested = asyncio.Event()
        self._is_urgent = asyncio.Event()
        self._failure: Exception | None = None
        """Why the process stops although nobody asked for it."""
        self._reload_requested = asyncio.Event()

    async def serve(self, data: DataDirectory) -> None:
        """Serve. Returns after everything that was begun has been ended.

        Raises:
            CarawayError: it cannot start, or cannot go on.
        """
        settings = self._manifest.runtime
        tallies = ApiTallies()
        secrets = self._read_secrets(tallies)
        certificate = security.certificate(settings, secrets, data.path)
        async with AsyncExitStack() as stack:
            sockets = [
                stack.enter_context(listeners.bind(self._options.http, "--http")),
                stack.enter_context(listeners.bind(self._options.metrics, "--metrics")),
            ]
            # Also here: the first process of a container is sent no signal that it does not handle.
            self._install_signal_handlers()
            joined = await self._unless_stopped(self._join(data, stack))
            if joined is None:
                logger.info("stopped before it was up")
                return
            services = await assembly.services(
                self._manifest, secrets, data, tallies, stack, joined
            )
            limits = None
            if self._options.limits_file is not None:
                limits = LimitsFile(self._options.limits_file, services)
                await limits.look()
            context = certificate.context if certificate else None
            self._servers = [
                HttpServer(
                    app.build_api(
                        services,
                        security.cors_origins(settings),
                        has_console=settings.console.enabled,
                    ),
                    context,
                    most_connections=settings.http.max_connections,
                    most_of_address=settings.connections_of_address,
                ),
                HttpServer(app.build_metrics(services, settings.telemetry.metric_prefix)),
            ]
            services.quotas["http_connections"] = self._servers[0].quota
            # After Ray was joined, whose own handler ends the process 3 s after a SIGTERM.
            self._install_signal_handlers()
            try:
                async with asyncio.TaskGroup() as group:
                    serving = self._begin_serving(group, sockets)
                    keeping = list(self._keeping(services, certificate, secrets))
                    keeping += [*joined.keepers, services.jobs.run_jobs, services.accelerations.run]
                    keeping.append(services.search.warm_up.run)
                    if limits is not None:
                        keeping.append(limits.run)
                    keepers = [group.create_task(self._keep(each)) for each in keeping]
                    await self._start(services, secrets, certificate, sockets, stack)
                    services.jobs.begin_jobs()
                    reloader = Reloader(self._manifest, services, self._reload_requested)
                    reload = partial(reloader.run, self._options.watch)
                    keepers.append(group.create_task(self._keep(reload)))
                    await self._stop_requested.wait()
                    await self._leave(services)
                    await self._stop(services)
                    for keeper in keepers:
                        keeper.cancel()
                    await asyncio.wait(serving)
            except BaseExceptionGroup as failed:
                # Connections stay open while the stack ends what requests would use.
                services.queries.is_stopping = True
                exception_group, others = failed.split(CarawayError)
                if exception_group is None:
                    raise
                if others is not None:
                    logger.error("more than one thing failed", exc_info=others)
                raise _first(exception_group) from None
        if self._failure is not None:
            raise self._failure

    async def _join(self, data: DataDirectory, stack: AsyncExitStack) -> Backend:
        if self._joining is None:
            return backend.standalone(self._manifest, data, stack, self._engines)
        # Imported here: a standalone process needs none of it.
        from caraway_gateway.composition import clustering

        engine = backend.engine(self._manifest, data)
        policy = backend.policy(self._manifest.runtime)
        return await clustering.join(self._joining, engine, policy, data, stack, self._engines)

    async def _unless_stopped(self, work: Coroutine[object, object, Backend]) -> Backend | None:
        task = tasks.begin(work)
        stop = tasks.begin(self._stop_requested.wait())
        try:
            await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            task.cancel()
            await asyncio.wait((task,))
            return None
        finally:
            stop.cancel()

    def _begin_serving(
        self, group: asyncio.TaskGroup, sockets: Sequence[socket.socket]
    ) -> list[asyncio.Task[None]]:
        return [
            group.create_task(server.serve(sockets=[listener]))
            for server, listener in zip(self._servers, sockets, strict=True)
        ]

    async def _start(
        self,
        services: Services,
        secrets: SecretResolver,
        certificate: Certificate | None,
        sockets: Sequence[socket.socket],
        stack: AsyncExitStack,
    ) -> None:
        """Load the datasets, and start Flight meanwhile; then report that everything is up."""
        for server in self._servers:
            await server.is_up.wait()
        http, metrics = (listeners.bound_address(listener) for listener in sockets)
        loading = tasks.begin(self._load(services, secrets))
        try:
            flight = await self._start_flight(services, certificate, stack)
        except BaseException:
            loading.cancel()
            raise
        addresses = {"http": http, "flight": flight, "metrics": metrics}
        endpoints = _name_endpoints(services, addresses, secure=certificate is not None)
        await loading
        self._say_ready(services, endpoints)
        ready_pipe.write(self._options.ready_fd, addresses)
        self.on_up()

    def _read_secrets(self, tallies: ApiTallies) -> SecretResolver:
        started = time.perf_counter()
        resolver = manifests.build_resolver(self._manifest, os.environ)
        tallies.secrets_load_ms = (time.perf_counter() - started) * 1000
        return resolver

    async def _start_flight(
        self, services: Services, certificate: Certificate | None, stack: AsyncExitStack
    ) -> Address:
        loop = asyncio.get_running_loop()
        tls = certificate.pem_files() if certificate else None

        def start() -> tuple[Any, Address]:
            # Imported here: its gRPC stack is slow to load, and only Flight needs it.
            from caraway_gateway.flight import FlightEndpoint

            endpoint = FlightEndpoint(services, loop, self._options.flight, tls)
            return endpoint, endpoint.start()

        endpoint, address = await asyncio.to_thread(start)
        stack.push_async_callback(endpoint.stop, _FLIGHT_STOP_S)
        self._flight = endpoint
        return address

    def _keeping(
        self, services: Services, certificate: Certificate | None, secrets: SecretResolver
    ) -> Iterator[Keeper]:
        check_s = self._manifest.runtime.task_history.retention_check_interval_s
        yield partial(_every, check_s, services.history.prune)
        yield partial(_every, recent.EVERY_S, partial(sampling.take, services))
        if certificate is not None:
            yield partial(_every, _CERTIFICATE_CHECK_S, certificate.reload_if_changed)
        if services.data_size is not None:
            yield services.data_size.run
        if services.keyring is not None:
            yield KeyReloader(self._manifest, secrets, services.keyring).run

    async def _keep(self, keeper: Keeper) -> None:
        """Stop as after a signal if the keeper fails, so that requests under way are answered."""
        try:
            await keeper()
        except Exception as exc:  # noqa: BLE001 -- any failure stops the process in order
            logger.error("cannot go on", extra={"cause": str(exc)})
            self._failure = self._failure or exc
            self._stop_requested.set()

    async def _load(self, services: Services, secrets: SecretResolver) -> None:
        catalog = services.catalog
        self._announcer.loading(len(self._manifest.datasets), self._manifest.name)
        for notice in self._manifest.notices:
            self._announcer.notice(notice)
        catalog.on_progress = self._announcer.progress
        services.functions.apply(self._manifest)
        services.tools.apply(self._manifest, secrets)
        await services.models.apply(self._manifest, secrets)
        services.rerankers.apply(self._manifest, secrets)
        await catalog.apply(self._manifest, secrets)
        services.workers.apply(self._manifest)
        stop = tasks.begin(self._stop_requested.wait())
        settled = tasks.begin(_settled(services))
        await asyncio.wait((settled, stop), return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        settled.cancel()

    def _say_ready(self, services: Services, endpoints: dict[str, str]) -> None:
        datasets = services.catalog.datasets.values()
        failed = sum(state.error is not None for state in datasets)
        loading = sum(state.is_being_loaded for state in datasets)
        for catalog in services.catalog.source_catalogs.states.values():
            if catalog.error is not None:
                failed += 1
                self._announcer.notice(catalog.error.message)
        for view in services.catalog.views.values():
            loading += view.status == "initializing"
            if view.error is not None:
                failed += 1
                self._announcer.notice(view.error.message)
        for model in services.models.states.values():
            loading += model.status == "initializing"
            if model.error is not None:
                failed += 1
                self._announcer.notice(model.error.message)
        for embedder in services.embeddings.states.values():
            loading += embedder.declared.is_declared and embedder.status == "initializing"
            if embedder.error is not None:
                failed += 1
                self._announcer.notice(embedder.error.message)
        for reranker in services.rerankers.states.values():
            loading += reranker.status == "initializing"
            if reranker.error is not None:
                failed += 1
                self._announcer.notice(reranker.error.message)
        has_console = self._manifest.runtime.console.enabled
        self._announcer.ready(endpoints, failed, loading, has_console=has_console)
        logger.info("runtime is up", extra={**endpoints, "failed": failed})

    async def _leave(self, services: Services) -> None:
        """Serve on while clients move to other schedulers, which load balancers find meanwhile."""
        delay_s = self._options.shutdown_delay_s
        if not delay_s:
            return
        logger.info("serving on before the stop", extra={"delay_s": delay_s})
        services.life.is_leaving = True
        for server in self._servers:
            server.leave()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await self._is_urgent.wait()
        # While calls are taken: those that clients send before they learn of it are answered.
        await self._drain_flight()

    async def _stop(self, services: Services) -> None:
        self._announcer.stopping()
        active, jobs = len(services.queries.active), services.jobs.scheduler.running
        logger.info("stopping", extra={"active_queries": active, "jobs": jobs})
        for server in self._servers:
            server.drain()
        timeout_s = self._manifest.runtime.shutdown_timeout_s
        ending = self._end_work(services, timeout_s)
        if self._joining is None:
            await ending
        else:
            has_head = await exiting.unless_gone(ending, self._joining.join.head)
            # Ray's calls wait for a head that is gone, and so would Python for their threads.
            self.bound_end(_END_S if has_head else _ALONE_S, int(self._failure is not None))
        for server in self._servers:
            server.stop()

    async def _end_work(self, services: Services, timeout_s: float) -> None:
        await asyncio.gather(
            services.queries.stop(timeout_s), services.jobs.stop(timeout_s), self._drain_flight()
        )
        await services.mcp.aclose()

    async def _drain_flight(self) -> None:
        if self._flight is not None:
            await self._flight.drain()

    def _install_signal_handlers(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_stop_signal)
        loop.add_signal_handler(signal.SIGHUP, self._reload_requested.set)

    def _on_stop_signal(self) -> None:
        if self._stop_requested.is_set():
            # Asked twice, so stop at once.
            self._is_urgent.set()
            for server in self._servers:
                server.stop(now=True)
        self._stop_requested.set()


async def _settled(services: Services) -> None:
    await services.catalog.wait_settled()
    await services.models.wait_settled()
    await services.embeddings.wait_settled()
    await services.rerankers.wait_settled()


def _first(failed: BaseException) -> BaseException:
    """Keepers have tasks of their own, so that what failed may lie in groups within groups."""
    while isinstance(failed, BaseExceptionGroup):
        failed = failed.exceptions[0]
    return failed


async def _every(period_s: float, action: Callable[[], object]) -> None:
    while True:
        await asyncio.sleep(period_s)
        action()


def _name_endpoints(
    services: Services, addresses: Mapping[str, Address], *, secure: bool
) -> dict[str, str]:
    for connection in services.connections:
        if connection.name in addresses:
            connection.endpoint = str(addresses[connection.name])
            connection.status = "Ready"
    tls = "+tls" if secure else ""
    return {
        "HTTP": f"http{'s' if secure else ''}://{addresses['http']}",
        "Flight": f"grpc{tls}://{addresses['flight']}",
        "metrics": f"http://{addresses['metrics']}/metrics",
    }
