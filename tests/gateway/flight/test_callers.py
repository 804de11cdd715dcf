"""Keys and handshakes through a real client."""

from typing import Any

import pytest
from pyarrow import flight

from tests.gateway.flight.serving import KEYS, bearer, headers, query, serving
from tests.kit.engine import memory


class BasicClient(flight.ClientAuthHandler):  # type: ignore[misc] # pyarrow has no types
    """Arrow's own handshake, with the key in the payload."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key
        self._token = b""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        outgoing.write(flight.BasicAuth("anybody", self._key).serialize())
        self._token = incoming.read()

    def get_token(self) -> bytes:
        return self._token


@pytest.mark.parametrize(
    "options",
    [
        bearer("reader"),
        headers(x_api_key="reader"),
        headers(authorization="bearer  reader"),
        headers(authorization="Basic OnJlYWRlcg=="),
    ],
)
async def test_key_opens(options: flight.FlightCallOptions) -> None:
    async with serving(keys=KEYS) as server:
        assert (await server.ask(query("SELECT 1", options))).num_rows == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (None, "asks for a key"),
        (bearer("wrong"), "the key is not known"),
        (headers(x_api_key=""), "asks for a key"),
        (headers(authorization="Basic !"), "asks for a key"),
    ],
)
async def test_call_without_a_valid_key_is_unauthenticated(
    options: flight.FlightCallOptions | None, says: str
) -> None:
    async with serving(keys=KEYS) as server:
        with pytest.raises(flight.FlightUnauthenticatedError, match=says):
            await server.ask(query("SELECT 1", options))
        with pytest.raises(flight.FlightUnauthenticatedError):
            await server.ask(lambda c: list(c.list_flights(options=options)))


async def test_anybody_is_served_where_no_keys_are_configured() -> None:
    async with serving() as server:
        assert (await server.ask(query("SELECT 1", bearer("whatever")))).num_rows == 1


async def test_handshake_gives_a_session_that_is_accepted_as_bearer() -> None:
    def sign_in(connected: Any) -> tuple[bytes, bytes]:
        name, value = connected.authenticate_basic_token("anybody", "reader")
        return name, value

    async with serving({"t": memory(a=[1])}, keys=KEYS, writable=("t",)) as server:
        name, value = await server.ask(sign_in)
        assert name == b"authorization"
        session = flight.FlightCallOptions(headers=[(name, value)])
        assert (await server.ask(query("SELECT 1", session))).num_rows == 1
        # The session may do what the key may, and no more.
        with pytest.raises(flight.FlightUnauthorizedError):
            await server.ask(query("INSERT INTO t VALUES (1)", session))


async def test_handshake_with_the_key_in_its_payload() -> None:
    def sign_in(connected: Any) -> int:
        connected.authenticate(BasicClient("reader"))
        return int(query("SELECT 1")(connected).num_rows)

    async with serving(keys=KEYS) as server:
        assert await server.ask(sign_in) == 1


async def test_handshake_with_a_wrong_key_is_unauthenticated() -> None:
    async with serving(keys=KEYS) as server:
        with pytest.raises(flight.FlightUnauthenticatedError, match="not known"):
            await server.ask(lambda c: c.authenticate_basic_token("anybody", "wrong"))
        with pytest.raises(flight.FlightUnauthenticatedError, match="not known"):
            await server.ask(lambda c: c.authenticate(BasicClient("wrong")))


async def test_handshake_without_anything_is_unauthenticated() -> None:
    class Silent(BasicClient):
        def authenticate(self, outgoing: Any, incoming: Any) -> None:
            outgoing.write(b"")
            incoming.read()

    async with serving(keys=KEYS) as server:
        with pytest.raises(flight.FlightUnauthenticatedError, match="asks for a key"):
            await server.ask(lambda c: c.authenticate(Silent("")))


async def test_handshake_succeeds_where_no_keys_are_configured() -> None:
    async with serving() as server:
        name, _ = await server.ask(lambda c: c.authenticate_basic_token("anybody", "any"))
        assert name == b""
