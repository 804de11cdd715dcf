"""Clients that keep connections and do not retry, while one of two runtimes stops."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from caraway_core.settings import Address
from tests.kit.balancing import KeptClient, balancing
from tests.kit.processes import Child, child

QUERY = "SELECT count(*) AS n FROM people"
PAUSES_S = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
DELAY_S = 4
LONG_S = 600


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[list[Child]]:
    """Start two runtimes over the same data; when they stop, they serve on for a while."""
    with ExitStack() as stack:
        made = []
        for name, delay_s in (("leaving", DELAY_S), ("staying", LONG_S)):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "people.csv").write_text("id\n1\n2\n")
            manifest = folder / "caraway.yaml"
            manifest.write_text(
                "version: v1\nkind: Caraway\nname: e2e\n"
                "datasets:\n  - {from: 'file:people.csv', name: people}\n"
            )
            flags = ("--shutdown-delay", str(delay_s))
            made.append(stack.enter_context(child(folder, manifest, *flags)))
        yield made


async def happens(what: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not what():
            await asyncio.sleep(0.01)


async def test_no_request_fails_when_one_of_two_runtimes_stops(pair: list[Child]) -> None:
    leaving, staying = pair
    backends = [Address.parse(each.addresses["http"]) for each in pair]
    async with balancing(backends) as balancer:
        url = f"http://127.0.0.1:{balancer.port}/v1/sql"
        clients = [KeptClient(url, QUERY, pause_s) for pause_s in PAUSES_S for _ in backends]
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(client.run()) for client in clients]
            await happens(lambda: all(client.answers > 1 for client in clients))

            leaving.signal(signal.SIGTERM)
            # Clients come back while the balancer still knows the runtime that stops.
            await happens(lambda: sum(client.closes for client in clients) > len(PAUSES_S))
            assert leaving.api.get("/v1/ready").status_code == 503
            assert leaving.sql(QUERY).json() == [{"n": 2}]
            balancer.backends = backends[1:]
            assert await asyncio.to_thread(leaving.wait) == 0

            before = [client.answers for client in clients]
            await happens(
                lambda: all(
                    client.answers > count for client, count in zip(clients, before, strict=True)
                )
            )
            for task in running:
                task.cancel()

    assert [failure for client in clients for failure in client.failures] == []
    assert all(client.closes for client in clients[:: len(backends)])
    assert staying.sql(QUERY).json() == [{"n": 2}]
    staying.signal(signal.SIGTERM)
    await happens(lambda: "serving on before the stop" in staying.logged())
    staying.signal(signal.SIGTERM)
    assert await asyncio.to_thread(staying.wait) == 0
    assert "serving on before the stop" in leaving.logged()
