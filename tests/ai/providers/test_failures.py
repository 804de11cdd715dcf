"""Failures of providers and connections become the right errors, and show no secret."""

import errno
import itertools
import json
import socket
import ssl
import time
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.providers import failures
from caraway_ai.providers.failures import FailureReader, ProviderWords, read_words
from caraway_core.errors import ModelAwayError, ModelError, ModelInputError

KEY = "sk-very-secret-key"
READER = FailureReader("m", "openai_api_key", (KEY,))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "message", "code", "type", "x"]), inner)
    ),
    max_leaves=8,
)


def openai_words(message: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "code": code, "type": "invalid_request_error"}}


@pytest.mark.parametrize(
    ("status", "body", "type_", "told"),
    [
        (401, {}, "auth", "'openai_api_key'"),
        (403, b"<html>", "auth", "refused the key (status 403)"),
        (400, openai_words("Incorrect API key provided: x"), "auth", "status 400"),
        (400, openai_words("API key not valid. Please pass one."), "auth", "status 400"),
        (400, openai_words("the api key of your fridge is fine"), "invalid", "your fridge"),
        (500, openai_words("image input is not supported - hint: ..."), "invalid", "image input"),
        (402, {}, "quota", "check the plan and the billing"),
        (429, openai_words("no money", "insufficient_quota"), "quota", "billing"),
        (404, {}, "not_found", "'endpoint'"),
        (429, {}, "rate_limit", "try again in 5 s"),
        (408, {}, "timeout", "did not finish in time"),
        (504, {}, "timeout", "did not finish in time"),
        (502, {}, "unavailable", "status 502"),
        (529, {}, "unavailable", "status 529"),
        (413, {}, "invalid", "it does not say why"),
        (422, {"message": "bad 'n'"}, "invalid", "bad 'n'"),
        (500, openai_words("secret of ours"), "failed", "status 500"),
        (302, {}, "failed", "status 302"),
        (418, {}, "failed", "status 418"),
    ],
)
def test_a_status_has_its_type(status: int, body: Any, type_: str, told: str) -> None:
    error = READER.of_status(status, {}, body)
    assert error.type == type_
    assert error.message.startswith("model 'm': ")
    assert told in error.message
    assert isinstance(error, ModelInputError) == (type_ == "invalid")


def test_only_words_on_the_request_are_passed_on() -> None:
    for status in (401, 402, 404, 429, 500, 503, 504):
        error = READER.of_status(status, {}, openai_words("words of the provider"))
        assert "words of the provider" not in error.message


@pytest.mark.parametrize(
    ("message", "counts"),
    [
        ("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
         "8192, 9000"),
        ("prompt is too long: 203,512 tokens > 200000 maximum", "203,512"),
        ("the request exceeds the available context size", ""),
        ("input is too long", ""),
    ],
)  # fmt: skip
def test_a_request_that_is_too_long_says_the_counts(message: str, counts: str) -> None:
    error = READER.of_status(400, {}, openai_words(message))
    assert isinstance(error, ModelInputError) and error.type == "context_length"
    assert ("in tokens: " in error.message) == bool(counts)
    assert counts in error.message


def test_a_code_says_that_a_request_is_too_long() -> None:
    error = READER.of_status(400, {}, openai_words("no", "context_length_exceeded"))
    assert error.type == "context_length"


def test_secrets_line_ends_and_long_words_are_cut() -> None:
    message = f"bad\r\nheader {KEY}\tand " + "x" * 100_000
    error = READER.of_status(400, {}, openai_words(message))
    assert KEY not in error.message
    assert "bad header *** and x" in error.message
    assert "\n" not in error.message and len(error.message) < 600


def test_a_secret_that_begins_another_one_hides_none_of_it() -> None:
    reader = FailureReader("m", "key", ("abcdef", "abcdef-and-more"))
    error = reader.of_status(400, {}, openai_words("your key is abcdef-and-more"))
    assert error.message.endswith("your key is ***")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", 3), ("2.1", 3), ("0.001", 1), ("0", None), ("-3", None), ("", None), ("soon", None),
        ("nan", None), ("inf", None), ("1e400", None), ("999999", 3600), ("Wed, 99 Foo", None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None), ("Mon, 01 Jan 0001 00:00:00 GMT", None),
    ],
)  # fmt: skip
def test_the_time_to_wait_is_read(text: str, expected: int | None) -> None:
    assert failures.retry_after_s({"retry-after": text}) == expected


def test_the_time_to_wait_may_be_a_date() -> None:
    found = failures.retry_after_s({"retry-after": formatdate(time.time() + 600, usegmt=True)})
    assert found is not None and 500 < found <= 601


def test_the_time_to_wait_is_passed_on() -> None:
    error = READER.of_status(429, {"retry-after": "17"}, {})
    assert isinstance(error, ModelAwayError) and error.retry_after_s == 17
    assert "in 17 s" in error.message


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"error": {"message": "m", "code": "c", "param": "p"}}', ProviderWords("m", "c", "p")),
        ('{"error": "m", "code": 7}', ProviderWords("m", "7")),
        ({"message": "m"}, ProviderWords("m")),
        ([{"error": {"message": "m", "code": 400}}], ProviderWords("m", "400")),
        ({"error": {"code": "c"}, "message": "m"}, ProviderWords("m", "c")),
        ({"error": {"message": ["m"]}}, ProviderWords()),
        ({"error": None, "message": "m"}, ProviderWords()),
        ("plain words", ProviderWords("plain words")),
        (b"\xff\xfe\x00", ProviderWords()),
        ("[" * 100_000, ProviderWords("[" * 100_000)),
        ([], ProviderWords()),
        (None, ProviderWords()),
        (5, ProviderWords()),
    ],
)
def test_words_are_read_in_every_shape(body: Any, expected: ProviderWords) -> None:
    assert read_words(body) == expected


@given(JSON, st.integers(300, 599))
def test_any_body_becomes_an_error(body: Any, status: int) -> None:
    for given_ in (body, json.dumps(body), json.dumps(body).encode()):
        assert isinstance(READER.of_status(status, {}, given_), ModelError)
        assert isinstance(READER.in_stream(given_), ModelError)


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        ({"error": {"type": "overloaded_error", "message": "x"}}, "unavailable"),
        ({"type": "error", "error": {"type": "rate_limit_error"}}, "rate_limit"),
        ({"error": {"code": "rate_limit_exceeded"}}, "rate_limit"),
        ({"error": {"code": "insufficient_quota"}}, "quota"),
        ({"error": {"type": "authentication_error"}}, "auth"),
        ({"error": {"code": 429, "message": "x"}}, "rate_limit"),
        ({"code": 503, "message": "x"}, "unavailable"),
        ({"error": {"code": 200}}, "failed"),
        ({"error": {"code": "server_error"}}, "failed"),
        ({"error": "it broke"}, "failed"),
        ({"error": {"type": ["rate_limit_error"]}}, "failed"),
        (7, "failed"),
    ],
)
def test_an_error_in_a_stream_has_its_type(body: Any, type_: str) -> None:
    assert READER.in_stream(body).type == type_


def chained(*exceptions: BaseException) -> BaseException:
    for outer, inner in itertools.pairwise(exceptions):
        outer.__cause__ = inner
    return exceptions[0]


class ServerDisconnectedError(Exception):
    """As `aiohttp` names it."""


@pytest.mark.parametrize(
    ("exc", "told"),
    [
        (chained(RuntimeError("http://user:pw@host"), socket.gaierror(8, "x")),
         "the name of its host is not known"),
        (chained(RuntimeError(), OSError(errno.ECONNREFUSED, "10.0.0.1:9")), "Connection refused"),
        (chained(RuntimeError(), ServerDisconnectedError()), "closed the connection"),
        (chained(RuntimeError("10.0.0.1"), ValueError("10.0.0.2")), "(ValueError)"),
        (chained(RuntimeError(), ssl.SSLError(1, "x")), "TLS with its provider failed"),
    ],
)  # fmt: skip
def test_a_lost_connection_says_why_without_addresses(exc: BaseException, told: str) -> None:
    error = READER.of_transport(exc, is_timeout=False)
    assert isinstance(error, ModelAwayError) and error.type == "unavailable"
    assert told in error.message
    assert "10.0.0" not in error.message and "pw@" not in error.message


def test_a_time_out_and_a_loop_of_causes() -> None:
    assert READER.of_transport(TimeoutError(), is_timeout=True).type == "timeout"
    first, second = RuntimeError(), RuntimeError()
    first.__cause__, second.__cause__ = second, first
    assert len(list(failures.causes(first))) == 20
