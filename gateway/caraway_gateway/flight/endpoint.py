"""The life of the endpoint: bind, serve, stop."""

import asyncio
import contextlib
import logging
import threading

import pyarrow as pa

from caraway_core.errors import CarawayError
from caraway_core.settings import Address
from caraway_gateway.flight.callers import CallGate, Handshake
from caraway_gateway.flight.identities import Identities, Sessions
from caraway_gateway.flight.parallel import ParallelReads
from caraway_gateway.flight.readings import WaitingRoom
from caraway_gateway.flight.server import FlightServer
from caraway_gateway.services import Services
from caraway_serving import listeners
from caraway_serving.flight import connections
from caraway_serving.flight.bridge import Bridge
from caraway_serving.tls import ServerTls

logger = logging.getLogger(__name__)
_FLAG = "--flight"
_LAST_WAIT_S = 1.0
_FETCH_S = 2.0


class FlightEndpoint:
    """Plain Arrow Flight over the query service of this process.

    `loop` is the process's event loop.
    """

    def __init__(
        self,
        services: Services,
        loop: asyncio.AbstractEventLoop,
        address: Address,
        tls: ServerTls | None = None,
    ) -> None:
        self._services = services
        self._loop = loop
        self._address = address
        self._tls = tls
        self._bridge = Bridge(loop)
        self._waiting = WaitingRoom(services.queries.admission.max_running)
        self._parallel = ParallelReads(services, tls)
        self._server: FlightServer | None = None
        self._is_down: asyncio.Event | None = None

    def start(self) -> Address:
        """Listen, and return where: port 0 takes any.

        Raises:
            CarawayError: another process listens there, or the address is not ours.
        """
        # gRPC does not say why it cannot listen; a socket of our own does.
        listeners.bind(self._address, _FLAG).close()
        services = self._services
        sessions = Sessions(most_each=services.manifest.current.runtime.quotas.max_flight_sessions)
        services.quotas["flight_sessions"] = sessions.quota
        services.quotas["flight_answers"] = self._waiting.quota
        services.quotas["flight_running_answers"] = self._waiting.live_quota
        identities = Identities(services.keyring, sessions)
        scheme = "grpc+tls" if self._tls else "grpc+tcp"
        try:
            self._server = FlightServer(
                self._services,
                self._bridge,
                self._waiting,
                self._parallel,
                f"{scheme}://{self._address}",
                CallGate(identities, Handshake(identities), services.limits, services.tallies),
                self._tls,
            )
        except pa.ArrowException as exc:
            raise CarawayError(
                f"cannot listen on {self._address}: {exc}; choose another address with "
                f"{_FLAG} HOST:PORT"
            ) from exc
        return Address(self._address.host, self._server.port)

    async def drain(self) -> None:
        """Close kept connections, each after the calls that it carries, and take no new ones.

        An answer that GetFlightInfo began has a moment to be fetched over its connection.
        """
        if self._is_down is not None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FETCH_S):
                await self._waiting.wait_empty()
        self._begin_shutdown()

    async def stop(self, timeout_s: float) -> None:
        """Take no more calls, let those under way finish, and cut them off after the time.

        Cutting off takes up to two seconds more.
        """
        is_down = self._begin_shutdown()
        server, self._server = self._server, None
        if server is None or is_down is None:
            return
        port = server.port
        self._waiting.clear()
        await self._parallel.aclose()
        if not await _happens(is_down, timeout_s):
            # Those that wait for rows get the reason; those that do not even read are cut off.
            self._bridge.close()
            if not await _happens(is_down, _LAST_WAIT_S):
                connections.cut(port)
                await _happens(is_down, _LAST_WAIT_S)

    def _begin_shutdown(self) -> asyncio.Event | None:
        """Have the server ask its clients to leave; return an event that is set once all have."""
        if self._server is not None and self._is_down is None:
            self._is_down = asyncio.Event()
            # Arrow waits without limit; that must not hold up the process, hence a daemon.
            threading.Thread(
                target=self._shut_down,
                args=(self._server, self._is_down),
                name="flight-stop",
                daemon=True,
            ).start()
        return self._is_down

    def _shut_down(self, server: FlightServer, is_down: asyncio.Event) -> None:
        try:
            server.shutdown()
        except Exception:
            logger.exception("Flight does not stop in order")
        finally:
            self._bridge.post(is_down.set)


async def _happens(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
