"""Addresses of the web: where requests go, and what messages may show of it."""

from pathlib import Path

import pytest

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources import web_address
from caraway_plugins.sources.params import Params


def request(path: str, connector: str = "https") -> SourceRequest:
    return SourceRequest(TableName("t"), connector, path, {}, (), "read", Path(), Path())


@pytest.mark.parametrize(
    ("path", "port", "address"),
    [
        ("example.org/a.csv", None, "https://example.org/a.csv"),
        ("//example.org/a.csv", None, "https://example.org/a.csv"),
        ("example.org/a?b=c", "8443", "https://example.org:8443/a?b=c"),
        ("example.org:1/a", "8443", "https://example.org:8443/a"),
        ("[::1]/a", "80", "https://[::1]:80/a"),
    ],
)
def test_address_is_that_of_the_manifest(path: str, port: str | None, address: str) -> None:
    params = Params({"http_port": port} if port else {})
    assert web_address.of(request(path), params) == address


@pytest.mark.parametrize("path", ["example.org:x/a", "[::1/a", "exa\0mple/a", "a" * 70_000])
def test_other_texts_are_no_addresses(path: str) -> None:
    with pytest.raises(DatasetError, match="write https://host/path"):
        web_address.of(request(path), Params({}))


@pytest.mark.parametrize(
    "path",
    ["user:secret@example.org/a", "//user:secret@example.org/a", "example.org/a?key=secret",
     "secret@example.org/a?key=secret", "a@secret@example.org/a"],
)  # fmt: skip
def test_messages_show_neither_logins_nor_queries(path: str) -> None:
    assert web_address.title(request(path)) == "https://example.org/a"


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("", {}),
        (" ;,\n ", {}),
        ("A: b", {"A": "b"}),
        ("A: b, C: d", {"A": "b", "C": "d"}),
        ("A: b; C: d\nE: f", {"A": "b", "C": "d", "E": "f"}),
        ("A: http://b:80/c", {"A": "http://b:80/c"}),
        ("A:", {"A": ""}),
        ("A: b, A: c", {"A": "c"}),
    ],
)
def test_headers_are_pairs(text: str, headers: dict[str, str]) -> None:
    assert web_address.headers(Params({"http_headers": text})) == headers


@pytest.mark.parametrize("text", ["A", "A: b, C", "A=b"])
def test_header_without_a_colon_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(DatasetError, match=r"params\.http_headers must have the form") as caught:
        web_address.headers(Params({"http_headers": text + " secret"}))
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("values", "header"),
    [
        ({}, None),
        ({"http_username": "", "http_password": ""}, None),
        ({"http_username": "a", "http_password": "b"}, "Basic YTpi"),
        ({"http_username": "a"}, "Basic YTo="),
        ({"http_password": "b"}, "Basic OmI="),
        ({"http_username": "é"}, "Basic w6k6"),
    ],
)
def test_login_is_basic(values: dict[str, str], header: str | None) -> None:
    assert web_address.basic(Params(values)) == header
