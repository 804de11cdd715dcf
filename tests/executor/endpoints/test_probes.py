"""A startup probe waits for an executor to be ready, and passes if that takes longer."""

import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from caraway_core.settings import Address
from caraway_executor.endpoints.probes import ActorAnswer, ProbeServer


class Later(ActorAnswer):
    """An executor that is ready when the test says so."""

    __slots__ = ("asked", "is_ready")

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.is_ready = threading.Event()

    def unready(self) -> str:
        self.asked.set()
        return "" if self.is_ready.is_set() else "it has not joined"


def status(probes: ProbeServer, path: str) -> int:
    with urllib.request.urlopen(f"http://{probes.address}{path}", timeout=60) as answer:
        return int(answer.status)


def test_health_with_wait_comes_when_the_executor_is_ready() -> None:
    seen = Later()
    with ProbeServer(Address("127.0.0.1", 0), seen) as probes, ThreadPoolExecutor() as pool:
        asked = pool.submit(status, probes, "/health?wait=300")
        assert seen.asked.wait(60)
        assert not asked.done()

        seen.is_ready.set()

        assert asked.result(60) == 200


@pytest.mark.parametrize("path", ["/health", "/health?wait=0", "/health?wait=x", "/health?wait=1"])
def test_health_of_an_executor_that_has_not_joined_is_200(path: str) -> None:
    with ProbeServer(Address("127.0.0.1", 0), Later()) as probes:
        assert status(probes, path) == 200
