import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest

from caraway_plugins.changes import registry
from caraway_plugins.changes.registry import Registry
from caraway_plugins.changes.target import BadChangesError, RegistryAwayError
from tests.client.runtime import Answer, FakeRuntime, nobody, running

ROUTE = "GET /schemas/ids/7"
SCHEMA = {"type": "record", "name": "R", "fields": []}


def kept(schema: Any = SCHEMA, **more: Any) -> Answer:
    return Answer(body=orjson.dumps({"schema": orjson.dumps(schema).decode(), **more}))


@pytest.fixture
def server() -> Iterator[FakeRuntime]:
    with running() as fake:
        yield fake


@contextmanager
def opened(url: str, username: str = "", password: str = "") -> Iterator[Registry]:
    found = registry.of_params(
        {
            "schema_registry_url": url,
            "schema_registry_username": username,
            "schema_registry_password": password,
        }
    )
    assert found is not None
    try:
        yield found
    finally:
        found.close()


def test_schema_is_asked_for_once(server: FakeRuntime) -> None:
    server.answers(ROUTE, kept(), Answer(500))

    with opened(server.endpoint + "/") as asked:
        asking = [threading.Thread(target=asked.schema, args=(7,)) for _ in range(4)]
        for each in asking:
            each.start()
        for each in asking:
            each.join(60)
        assert asked.schema(7) == SCHEMA

    assert len(server.asked) == 1
    assert "authorization" not in server.asked[0].headers


def test_no_more_schemas_are_kept_than_allowed(
    server: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_MOST_KEPT", 1)
    server.answers(ROUTE, kept())
    server.answers("GET /schemas/ids/8", kept())

    with opened(server.endpoint) as asked:
        for number in (7, 8, 8, 7):
            asked.schema(number)

    assert [each.path[-1] for each in server.asked] == ["7", "8", "7"]


def test_credentials_are_sent(server: FakeRuntime) -> None:
    server.answers(ROUTE, kept(schemaType="AVRO"))

    with opened(server.endpoint, "user", "pass") as asked:
        asked.schema(7)

    told = base64.b64encode(b"user:pass").decode()
    assert server.asked[0].headers["authorization"] == f"Basic {told}"


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (Answer(404, b"{}"), BadChangesError, "has no schema 7"),
        (Answer(401), RegistryAwayError, "schema_registry_password"),
        (Answer(500, b"secret"), RegistryAwayError, "returned 500; send the events again"),
        (Answer(302, headers={"location": "http://127.0.0.1:1/"}), RegistryAwayError, "302"),
        (Answer(200, b"<html>"), RegistryAwayError, "not from a schema registry"),
        (Answer(200, b"[]"), RegistryAwayError, "not from a schema registry"),
        (Answer(200, b"{}", breaks_off=True), RegistryAwayError, "does not respond"),
        (Answer(200, b" " * 5_000_000), BadChangesError, "larger than"),
        (kept(schemaType="PROTOBUF"), BadChangesError, "PROTOBUF, not Avro"),
        (kept(references=[{}]), BadChangesError, "as one schema"),
        (Answer(200, b'{"schema":"{"}'), BadChangesError, "not JSON"),
    ],
)
def test_errors_are_reported_and_not_cached(
    server: FakeRuntime, answer: Answer, error: type[Exception], says: str
) -> None:
    server.answers(ROUTE, answer, kept())

    with opened(server.endpoint) as asked:
        with pytest.raises(error, match=says):
            asked.schema(7)
        assert asked.schema(7) == SCHEMA


def test_registry_that_is_not_running_is_away() -> None:
    with nobody() as url, opened(url) as asked:
        with pytest.raises(RegistryAwayError, match="does not respond"):
            asked.schema(7)


def test_dataset_without_the_param_has_no_registry() -> None:
    assert registry.of_params({"avro_schema": "{}"}) is None


@pytest.mark.parametrize("url", ["registry:8081", "file:///x", "http://", "http://a:b@host"])
def test_address_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValueError, match="schema_registry_url") as caught:
        registry.of_params({"schema_registry_url": url})
    assert "a:b" not in str(caught.value)
