"""Headers of a manifest: which are read, which are refused, and which values stay secret."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.tools.headers import authorization, parsed_headers, secrets_in
from caraway_core.errors import ToolError


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("", {}),
        (" ;\n; ", {}),
        ("X-Key: k1", {"x-key": "k1"}),
        ("x-key:k1", {"x-key": "k1"}),
        ("X-Key: k1; Accept: a/b", {"x-key": "k1", "accept": "a/b"}),
        ("X-Key: k1\r\nAccept: a/b\r\n", {"x-key": "k1", "accept": "a/b"}),
        ("X-Url: http://a:80/b?c=d", {"x-url": "http://a:80/b?c=d"}),
        ("X-Empty:", {"x-empty": ""}),
        ("X-Key: a b\tc", {"x-key": "a b\tc"}),
        ("X-Key: a; x-KEY: b", {"x-key": "b"}),
        ("!#$%&'*+.^_`|~-: 1", {"!#$%&'*+.^_`|~-": "1"}),
    ],
)
def test_headers_are_read_as_a_manifest_writes_them(text: str, headers: dict[str, str]) -> None:
    assert parsed_headers("t", text) == headers


@pytest.mark.parametrize(
    "text", ["X-Key", "X Key: 1", ": s3cret", "s3cret", "a: 1; s3cret", "Ä: s3cret", '"a": s3cret']
)
def test_what_is_no_header_is_refused_without_its_value(text: str) -> None:
    with pytest.raises(ToolError, match="tool 't': headers are written as `Name: value") as caught:
        parsed_headers("t", text)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("value", ["s3crét", "s3cret\rX-Other: 1", "s3cret\x00", "s3\x7fcret"])
def test_a_value_that_cannot_be_sent_is_refused_by_the_name_of_its_header(value: str) -> None:
    with pytest.raises(ToolError, match="tool 't': the value of header 'X-Key' may only") as caught:
        parsed_headers("t", f"X-Key: {value}")
    assert "s3" not in str(caught.value)
    with pytest.raises(ToolError, match="tool 't': 'auth_token' may only have") as caught:
        authorization("t", "auth_token", value)
    assert "s3" not in str(caught.value)


@pytest.mark.parametrize(
    ("token", "value"),
    [
        ("abc", "Bearer abc"),
        ("abc\n", "Bearer abc"),
        ("  abc\r\n", "Bearer abc"),
        ("Basic abc", "Basic abc"),
        ("Bearer abc", "Bearer abc"),
    ],
)
def test_a_token_without_a_scheme_is_a_bearer_token(token: str, value: str) -> None:
    assert authorization("t", "auth_token", token) == value


@given(st.text(max_size=40))
def test_whatever_is_read_can_be_sent(text: str) -> None:
    try:
        headers = parsed_headers("t", text)
    except ToolError:
        return
    request = httpx.Request("GET", "http://a.test", headers=headers)
    sent = {key.lower(): value for key, value in request.headers.items()}
    assert headers.items() <= sent.items()
    assert not any("\n" in value or "\r" in value for value in headers.values())


@pytest.mark.parametrize(
    ("header", "value", "secrets"),
    [
        ("authorization", "Bearer abcdef", ("abcdef",)),
        ("authorization", "bearer   abcdef", ("abcdef",)),
        ("authorization", "Digest abcdef", ("abcdef",)),
        ("proxy-authorization", "ApiKey abcdef", ("abcdef",)),
        ("authorization", "abcdef", ("abcdef",)),
        ("authorization", "Bearer abc", ()),
        ("authorization", "Bearer", ()),
        ("x-key", "abcdef", ("abcdef",)),
        ("x-key", "abc def", ("abc def",)),
        ("x-key", "Token abcdef", ("abcdef",)),
        ("x-key", "abcde", ()),
        ("cookie", "session=abcdef", ("session=abcdef",)),
        ("accept", "application/json", ()),
        ("user-agent", "something", ()),
        ("content-type", "text/plain", ()),
    ],
)
def test_values_of_headers_are_secrets_without_their_scheme(
    header: str, value: str, secrets: tuple[str, ...]
) -> None:
    assert secrets_in({header: value}) == secrets
