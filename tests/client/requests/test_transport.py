import platform
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from caraway.errors import (
    ApiError,
    BrokenResponseError,
    InvalidEndpointError,
    UnreachableError,
)
from caraway.requests import retries
from caraway.requests.transport import ApiRequest, Transport
from caraway_core.errors import CarawayError
from tests.client.runtime import Answer, FakeRuntime, Pauses, nobody

GET = ApiRequest("GET", "/x", accept="application/json")


def ask(endpoint: str, api_key: str = "", policy: retries.RetryPolicy | None = None) -> str:
    connection = Transport(endpoint, api_key, sleep=Pauses())
    try:
        return connection.text(GET, policy or retries.once())
    finally:
        connection.close()


def test_the_key_and_the_user_agent_are_sent_as_headers(runtime: FakeRuntime) -> None:
    runtime.answers("GET /x", Answer(body=b"{}"))

    ask(runtime.endpoint, "secret")

    headers = runtime.asked[0].headers
    assert headers["x-api-key"] == "secret"
    assert headers["accept"] == "application/json"
    assert headers["accept-encoding"] == "identity"
    assert headers["user-agent"].startswith("caraway/")
    assert headers["user-agent"].endswith(
        f" ({platform.system()}/{platform.release()} {platform.machine()})"
    )


def test_an_empty_key_is_not_sent(runtime: FakeRuntime) -> None:
    runtime.answers("GET /x", Answer())

    ask(runtime.endpoint)

    assert "x-api-key" not in runtime.asked[0].headers


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"no such table\n", "no such table"),
        (b'{"error": "no such table"}', "no such table"),
        (b'{"message": "no such table"}', "no such table"),
        (b'{"other": 1}', '{"other": 1}'),
        (b"[1]", "[1]"),
        (b"", "the server returned status 400 without a message"),
    ],
)
def test_the_error_message_is_read_from_every_form_of_body(
    runtime: FakeRuntime, body: bytes, expected: str
) -> None:
    runtime.answers("GET /x", Answer(400, body))

    with pytest.raises(ApiError) as caught:
        ask(runtime.endpoint)

    assert (caught.value.status, caught.value.message) == (400, expected)


def test_reads_are_retried_after_the_requested_delay(runtime: FakeRuntime) -> None:
    busy = Answer(429, b"busy", {"Retry-After": "3"})
    runtime.answers("GET /x", busy, Answer(503), Answer(body=b"ok"))
    pauses = Pauses()
    connection = Transport(runtime.endpoint, "", sleep=pauses)

    text = connection.text(GET, retries.reads(3))
    connection.close()

    assert text == "ok"
    assert pauses.seconds == [3, 0.2]


def test_a_refused_connection_is_retried_and_then_reported() -> None:
    pauses = Pauses()
    with nobody() as endpoint, pytest.raises(UnreachableError) as caught:
        connection = Transport(endpoint, "", sleep=pauses)
        try:
            connection.text(GET, retries.reads(3))
        finally:
            connection.close()

    assert caught.value.endpoint == endpoint
    assert pauses.seconds == [0.1, 0.2, 0.4]


def test_a_truncated_response_is_an_error_and_not_retried(
    runtime: FakeRuntime,
) -> None:
    runtime.answers("GET /x", Answer(body=b"half", breaks_off=True))

    with pytest.raises(BrokenResponseError, match="is incomplete"):
        ask(runtime.endpoint, policy=retries.reads(3))

    assert len(runtime.asked) == 1


@pytest.mark.parametrize("endpoint", ["ftp://host", "http://", "http://host:port", "a b://c"])
def test_a_malformed_endpoint_is_rejected(endpoint: str) -> None:
    with pytest.raises(InvalidEndpointError):
        Transport(endpoint, "")


def test_the_scheme_of_an_endpoint_is_optional(runtime: FakeRuntime) -> None:
    runtime.answers("GET /x", Answer(body=b"ok"))

    assert ask(runtime.endpoint.removeprefix("http://") + "/") == "ok"


def test_invalid_ca_certificates_are_reported(tmp_path: Path) -> None:
    broken = tmp_path / "ca.pem"
    broken.write_text("nothing")

    with pytest.raises(CarawayError, match=r"ca\.pem"):
        Transport("https://127.0.0.1:1", "", cacert=broken)


def engine_errors() -> list[type[Exception]]:
    found: list[type[Exception]] = [httpx.InvalidURL]
    queue: list[type[Exception]] = [httpx.HTTPError]
    while queue:
        kind = queue.pop()
        found.append(kind)
        queue.extend(kind.__subclasses__())
    # Raised by httpx.Response.raise_for_status, which is not called.
    return sorted(set(found) - {httpx.HTTPStatusError}, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", engine_errors())
def test_every_httpx_error_is_mapped(
    kind: Callable[[str], Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise kind("broken")

    monkeypatch.setattr(httpx.Client, "stream", fail)

    with pytest.raises(CarawayError):
        ask("http://127.0.0.1:1")
