"""Keys and principals that pass the gate."""

import pytest
from starlette.responses import PlainTextResponse

from caraway_serving.access import ANONYMOUS, Keyring
from caraway_serving.gates.access import AccessGate
from caraway_serving.scopes import PRINCIPAL
from tests.serving.gates.asking import Route, ask, scope

KEYS = Keyring([("reader", "ro"), ("writer", "rw"), ("root", "admin")])


@pytest.mark.parametrize("path", ["/v1", "/v1/sql", "/v1/ready", "/v1/queries/x/results"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x_api_key": ""},
        {"x_api_key": "wrong"},
        {"x_api_key": "reade r"},
        {"x_api_key": "\xe9"},
        {"authorization": "Bearer wrong"},
        {"authorization": "Basic cmVhZGVyOg=="},
        {"authorization": "reader"},
        {"x_api_key": "wrong", "authorization": "Bearer reader"},
    ],
)
async def test_without_a_key_that_is_known_nothing_of_v1_is_reached(
    path: str, headers: dict[str, str]
) -> None:
    route = Route()
    answer = await ask(AccessGate(route, KEYS), scope(path, **headers))
    assert (answer.status, route.seen) == (401, [])
    assert "Bearer" in answer.headers["www-authenticate"]


@pytest.mark.parametrize(
    ("headers", "may_write"),
    [
        ({"x_api_key": "reader"}, False),
        ({"x_api_key": "writer"}, True),
        ({"authorization": "bearer writer"}, True),
        ({"x_api_key": "", "authorization": "Bearer reader"}, False),
    ],
)
async def test_known_key_passes_as_its_principal(headers: dict[str, str], may_write: bool) -> None:
    route = Route()
    answer = await ask(AccessGate(route, KEYS), scope(**headers))
    assert answer.status == 200
    (seen,) = route.seen
    assert seen[PRINCIPAL].may_write is may_write
    assert not seen[PRINCIPAL].is_admin


@pytest.mark.parametrize(("key", "access"), [("reader", "ro"), ("writer", "rw"), ("root", "admin")])
async def test_a_response_says_the_access_of_its_key(key: str, access: str) -> None:
    answer = await ask(AccessGate(Route(), KEYS), scope(x_api_key=key))
    assert answer.headers["x-key-access"] == access


async def test_a_response_without_keys_says_no_access() -> None:
    assert "x-key-access" not in (await ask(AccessGate(Route(), None), scope())).headers
    refused = await ask(AccessGate(Route(), KEYS), scope(x_api_key="wrong"))
    assert "x-key-access" not in refused.headers


@pytest.mark.parametrize("path", ["/health", "/openapi.json", "/", "", "/V1/sql"])
async def test_other_paths_are_open_and_name_nobody(path: str) -> None:
    route = Route()
    assert (await ask(AccessGate(route, KEYS), scope(path))).status == 200
    assert PRINCIPAL not in route.seen[0]


async def test_where_there_are_no_keys_everybody_is_the_same() -> None:
    route = Route()
    await ask(AccessGate(route, None), scope(x_api_key="anything"))
    assert route.seen[0][PRINCIPAL] is ANONYMOUS


async def test_empty_keyring_is_not_an_open_door() -> None:
    route = Route()
    assert (await ask(AccessGate(route, Keyring([("", "rw")])), scope())).status == 401
    assert (await ask(AccessGate(route, Keyring([])), scope(x_api_key=""))).status == 401
    assert route.seen == []


async def test_what_a_client_puts_into_headers_is_no_principal() -> None:
    route = Route()
    await ask(AccessGate(route, KEYS), scope(**{PRINCIPAL: "root", "x_api_key": "reader"}))
    assert not route.seen[0][PRINCIPAL].may_write


async def test_what_is_not_http_passes() -> None:
    route = Route()
    await ask(AccessGate(route, KEYS), scope(kind="lifespan"))
    assert len(route.seen) == 1


async def test_routes_may_have_a_refusal_of_their_own() -> None:
    own = PlainTextResponse("in our own words", 401)
    gate = AccessGate(Route(), KEYS, {"/v1/own/": own})
    assert (await ask(gate, scope("/v1/own/x"))).body == b"in our own words"
    assert (await ask(gate, scope("/v1/other"))).body == b"Unauthorized"
    assert (await ask(gate, scope("/v1/own/x", x_api_key="reader"))).status == 200
