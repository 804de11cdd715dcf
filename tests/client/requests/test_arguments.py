"""Mistakes of callers are named before anything is sent."""

from typing import Any

import pytest

from caraway.async_client import AsyncClient
from caraway.client import Client
from caraway_core.errors import CarawayError
from tests.client.runtime import Answer, FakeRuntime


@pytest.mark.parametrize("text", ["key\n", "schlüssel", "a\tb", "\x00"])
def test_a_key_that_no_header_holds_is_refused(text: str) -> None:
    with pytest.raises(CarawayError, match="api_key may have printable ASCII"):
        Client(text)
    with pytest.raises(CarawayError, match="user_agent may have printable ASCII"):
        Client(user_agent=text)


# Any: values of the wrong type.
@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"api_key": 5}, TypeError, "api_key must be of type str, not int"),
        ({"max_retries": -1}, ValueError, "0 or more"),
        ({"max_retries": "3"}, TypeError, "max_retries must be of type int, not str"),
        ({"max_retries": True}, TypeError, "not bool"),
    ],
)
def test_what_a_client_is_made_of(given: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Client(**given)


@pytest.mark.parametrize("retries", [-1, 2.5, "3", None])
def test_retries_are_a_count(retries: Any) -> None:
    with Client() as client, pytest.raises((TypeError, ValueError)):
        client.set_max_retries(retries)


@pytest.mark.parametrize("method", ["sql", "reader", "sql_json", "query"])
@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        ((5,), TypeError, "the statement must be of type str, not int"),
        ((b"SELECT 1",), TypeError, "not bytes"),
        (("SELECT '\ud800'",), CarawayError, "not valid Unicode"),
        (("SELECT ?", "x"), CarawayError, "a mapping.*or a list"),
        (("SELECT ?", {1}), CarawayError, "this is a set"),
    ],
)
def test_statements_and_their_parameters(
    runtime: FakeRuntime, method: str, call: tuple[Any, ...], error: type[Exception], says: str
) -> None:
    with Client(http_url=runtime.endpoint) as client, pytest.raises(error, match=says):
        getattr(client, method)(*call)
    assert not runtime.asked


def test_a_closed_client_says_so(runtime: FakeRuntime) -> None:
    client = Client(http_url=runtime.endpoint)
    client.close()
    client.close()
    for call in (client.datasets, lambda: client.sql("SELECT 1"), client.list_queries):
        with pytest.raises(CarawayError, match="the client is closed"):
            call()


def test_the_asynchronous_client_has_the_methods_of_the_guide() -> None:
    only_blocking = {"chat", "endpoint", "ingests", "listing", "rows", "sql_chunks"}
    only_blocking |= {"uses_flight", "uses_http", "watch_refresh"}
    public = {name for name in dir(Client) if not name.startswith("_")}
    assert public - set(dir(AsyncClient)) == only_blocking


async def test_asynchronous_lists(runtime: FakeRuntime) -> None:
    runtime.answers("GET /v1/datasets", Answer(body=b'[{"name": "t"}]'))
    runtime.answers("GET /v1/catalogs", Answer(body=b'[{"name": "c"}]'))
    async with AsyncClient(http_url=runtime.endpoint) as client:
        assert await client.datasets(status=True) == [{"name": "t"}]
        assert await client.catalogs() == [{"name": "c"}]
    assert [each.path for each in runtime.asked] == ["/v1/datasets", "/v1/catalogs"]
