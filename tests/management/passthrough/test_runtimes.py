"""Requests to the runtimes of projects, and what comes of answers that are none."""

from collections.abc import AsyncIterator, Iterable, Sequence

import pytest

from caraway_core.errors import UnavailableError
from caraway_management.domain.refusals import RefusedError
from caraway_management.passthrough import runtimes
from caraway_management.passthrough.connections import Content
from caraway_management.passthrough.headers import Header
from caraway_management.passthrough.runtimes import Runtime, Runtimes

RUNTIME = Runtime(1, "http://runtime:8090", "key")


class GivenResponse:
    """A response with a status and a body in parts."""

    headers: Sequence[Header] = ()

    def __init__(self, *parts: bytes, status: int = 200) -> None:
        self.status = status
        self.is_closed = False
        self._parts = parts

    async def parts(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part

    def close(self) -> None:
        self.is_closed = True


class GivenConnections:
    """Gives one response to all requests."""

    def __init__(self, response: GivenResponse) -> None:
        self.response = response
        self.sent: list[tuple[str, str, list[Header]]] = []
        self.is_closed = False

    async def send(
        self, method: str, url: str, headers: Iterable[Header], silence_s: float, content: Content
    ) -> GivenResponse:
        self.sent.append((method, url, list(headers)))
        return self.response

    async def aclose(self) -> None:
        self.is_closed = True


async def test_json_is_read_with_the_key_of_the_runtime() -> None:
    connections = GivenConnections(GivenResponse(b'{"rows"', b": 3}"))
    assert await Runtimes(connections).read_json(RUNTIME, "/v1/status", 5.0) == {"rows": 3}
    ((method, url, headers),) = connections.sent
    assert (method, url) == ("GET", "http://runtime:8090/v1/status")
    assert [value for _, value in headers] == [b"key"]
    assert connections.response.is_closed


async def test_what_is_no_json_means_that_the_runtime_is_away() -> None:
    connections = GivenConnections(GivenResponse(b"<html>"))
    with pytest.raises(UnavailableError):
        await Runtimes(connections).read_json(RUNTIME, "/", 5.0)
    assert connections.response.is_closed


async def test_a_page_is_read_only_from_a_response_that_is_well() -> None:
    page = GivenConnections(GivenResponse(b"a 1\n", b"b \xff\n"))
    assert await Runtimes(page).read_page("http://runtime/metrics", 5.0) == "a 1\nb \ufffd\n"
    failed = GivenConnections(GivenResponse(b"no", status=500))
    with pytest.raises(UnavailableError):
        await Runtimes(failed).read_page("http://runtime/metrics", 5.0)
    assert failed.response.is_closed


async def test_a_page_without_end_is_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "_MOST_PAGE_BYTES", 10)
    connections = GivenConnections(GivenResponse(b"12345", b"67890", b"1"))
    with pytest.raises(UnavailableError):
        await Runtimes(connections).read_page("http://runtime/metrics", 5.0)


async def test_closing_closes_the_connections() -> None:
    connections = GivenConnections(GivenResponse())
    await Runtimes(connections).aclose()
    assert connections.is_closed


@pytest.mark.parametrize("endpoint", [None, "", "runtime:8090", "file:///etc/passwd"])
def test_a_project_without_an_address_is_not_deployed(endpoint: str | None) -> None:
    with pytest.raises(RefusedError, match="has no runtime yet"):
        runtimes.address_of(endpoint, is_paused=False)


def test_the_address_of_a_project_unless_it_is_paused() -> None:
    assert runtimes.address_of("https://one.example/", is_paused=False) == "https://one.example"
    with pytest.raises(RefusedError, match="paused"):
        runtimes.address_of("https://one.example", is_paused=True)
