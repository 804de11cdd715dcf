"""A management service of the test that also listens, for programs that send requests by HTTP."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import anyio.from_thread

from caraway_core.settings import Address
from caraway_serving import listeners
from caraway_serving.listeners import HttpServer
from tests.kit import management
from tests.kit.management import Installation


@contextlib.contextmanager
def listening(service: Installation) -> Iterator[str]:
    """Let a service listen, on the loop that it has. Yields its URL."""
    portal = service.client.portal
    assert isinstance(portal, anyio.from_thread.BlockingPortal)
    listener = listeners.bind(Address("127.0.0.1", 0), "--http")
    address = listeners.bound_address(listener)
    server = HttpServer(service.client.app)
    serving = portal.start_task_soon(lambda: server.serve(sockets=[listener]))
    service.run(server.is_up.wait)
    try:
        yield f"http://{address}"
    finally:
        # Requests end by themselves: some write after they have answered.
        portal.call(server.drain)
        portal.call(server.stop)
        serving.result(60)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[Installation, str]]:
    """Serve over a new SQLite database. Yields the service and its URL."""
    database = management.prepared_embedded_url(folder)
    with management.installation(database, is_prepared=True) as service:
        with listening(service) as url:
            yield service, url
