import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx
import pytest

from caraway_management.domain.addresses import Outside
from caraway_management.notices import dialing
from caraway_management.notices.dialing import Dialer, UnreachableError
from tests.kit import certificates

PUBLIC, PRIVATE = "93.184.216.34", "10.0.0.1"
URL = "https://hooks.example.com/a?b=1"


class Names:
    """A resolver with a script of answers."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self._answers.pop(0)


class Network:
    """Records requests in place of a network."""

    def __init__(self, status: int = 204, body: bytes = b"", **headers: str) -> None:
        self.requests: list[httpx.Request] = []
        self.refused: set[str] = set()
        self._status, self._body, self._headers = status, body, headers

    def __call__(self) -> httpx.AsyncBaseTransport:
        return httpx.MockTransport(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if request.url.host in self.refused:
            raise httpx.ConnectError("refused")
        stream = httpx.ByteStream(self._body)
        return httpx.Response(self._status, headers=self._headers, stream=stream)


async def _send(dialer: Dialer, url: str = URL) -> httpx.Response:
    return await dialer.send("POST", url, b"{}", {"content-type": "application/json"})


async def test_the_connection_is_made_to_the_checked_address() -> None:
    names, network = Names([PUBLIC, "2606:4700::1111"]), Network()
    assert (await _send(Dialer(Outside(), names, network))).status_code == 204
    [request] = network.requests
    assert str(request.url) == f"https://{PUBLIC}/a?b=1"
    assert request.headers["host"] == "hooks.example.com"
    assert request.extensions["sni_hostname"] == "hooks.example.com"
    assert names.asked == [("hooks.example.com", 443)]


async def test_a_name_that_resolves_differently_the_second_time_leads_nowhere_else() -> None:
    names, network = Names([PUBLIC], [PRIVATE]), Network()
    dialer = Dialer(Outside(), names, network)
    await _send(dialer)
    with pytest.raises(UnreachableError, match="notices are not sent to"):
        await _send(dialer)
    assert [request.url.host for request in network.requests] == [PUBLIC]


@pytest.mark.parametrize(
    "found",
    [
        [PRIVATE],
        [PUBLIC, PRIVATE],
        ["127.0.0.1"],
        ["169.254.169.254"],
        ["100.64.1.1"],
        ["::1"],
        ["::ffff:127.0.0.1"],
        ["fe80::1%eth0"],
        ["not an address"],
        [],
    ],
)
async def test_a_name_with_an_address_inside_is_refused(found: list[str]) -> None:
    network = Network()
    with pytest.raises(UnreachableError):
        await _send(Dialer(Outside(), Names(found), network))
    assert network.requests == []


async def test_a_stored_url_is_checked_again() -> None:
    names, network = Names(), Network()
    for url in ("https://127.0.0.1/", "http://hooks.example.com/", "https://2130706433/"):
        with pytest.raises(UnreachableError):
            await _send(Dialer(Outside(), names, network), url)
    assert (names.asked, network.requests) == ([], [])


async def test_redirects_are_not_followed() -> None:
    network = Network(302, location="https://127.0.0.1/")
    assert (await _send(Dialer(Outside(), Names([PUBLIC]), network))).status_code == 302
    assert len(network.requests) == 1


async def test_the_next_address_is_tried_if_none_listens() -> None:
    network = Network()
    network.refused = {PUBLIC}
    second = "2606:4700::1111"
    assert (await _send(Dialer(Outside(), Names([PUBLIC, second]), network))).is_success
    assert [request.url.host for request in network.requests] == [PUBLIC, second]
    network.refused = {PUBLIC, second}
    with pytest.raises(UnreachableError, match="ConnectError"):
        await _send(Dialer(Outside(), Names([PUBLIC, second]), network))


async def test_a_long_response_is_cut() -> None:
    network = Network(200, b"x" * 1_000_000)
    response = await _send(Dialer(Outside(), Names([PUBLIC]), network))
    assert len(response.content) == 64 * 1024


async def test_a_receiver_that_never_answers_is_left() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return ()

    with pytest.raises(UnreachableError, match="no response in"):
        await _send(Dialer(Outside(), never, Network(), timeout_s=0.01))


async def test_a_name_that_does_not_exist_is_reported() -> None:
    with pytest.raises(UnreachableError, match="cannot be resolved"):
        await dialing.resolve("name.invalid", 443)


@contextlib.asynccontextmanager
async def _receiving(folder: Path) -> AsyncIterator[tuple[int, list[str], list[bytes]]]:
    """Serve HTTPS as hooks.example.com on 127.0.0.1; yield the port, names and heads."""
    names: list[str] = []
    heads: list[bytes] = []
    certificate, key = folder / "cert.pem", folder / "key.pem"
    certificates.make_certificate(certificate, key, is_authority=True, host="hooks.example.com")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.sni_callback = lambda _socket, name, _context: names.append(name or "")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1], names, heads


async def test_the_certificate_is_that_of_the_name(tmp_path: Path) -> None:
    trusting = ssl.create_default_context()
    async with _receiving(tmp_path) as (port, names, heads):
        trusting.load_verify_locations(tmp_path / "cert.pem")
        inside = Outside(allows_inside=True)

        def dialer() -> Dialer:
            return Dialer(
                inside, Names(["127.0.0.1"]), lambda: httpx.AsyncHTTPTransport(verify=trusting)
            )

        url = f"https://hooks.example.com:{port}/a"
        assert (await _send(dialer(), url)).status_code == 204
        with pytest.raises(UnreachableError):
            await _send(dialer(), f"https://other.example.com:{port}/a")
    assert names == ["hooks.example.com", "other.example.com"]
    assert f"Host: hooks.example.com:{port}".lower().encode() in heads[0].lower()
    assert len(heads) == 1
