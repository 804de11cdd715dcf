"""Requests to an API: where their secrets may go, and what messages show of them."""

import httpx
import pytest

from caraway_core.errors import DatasetError
from caraway_plugins.sources.api import calls
from caraway_plugins.sources.api.calls import ApiCall

HOME = "https://u:hunter2@api.example.com/v1/rows?key=hunter2"


def call(**changed: str) -> ApiCall:
    return ApiCall(HOME, changed.pop("url", HOME), {"authorization": "hunter2"}, **changed)


def test_messages_show_no_secret() -> None:
    assert call().title == "https://api.example.com/v1/rows"
    assert "hunter2" not in repr(call(body="hunter2"))
    assert calls.title_of("https://h/a?b=hunter2#hunter2") == "https://h/a"


@pytest.mark.parametrize(
    ("changed", "verb"),
    [({}, "GET"), ({"body": "{}"}, "POST"), ({"body": "{}", "method": "PUT"}, "PUT")],
)
def test_verbs(changed: dict[str, str], verb: str) -> None:
    assert call(**changed).verb == verb


@pytest.mark.parametrize(
    ("left", "right", "is_same"),
    [
        ("https://h/a", "https://h:443/b", True),
        ("http://h", "http://h:80/b", True),
        ("http://h", "https://h", True),
        ("http://h:8080", "https://h:8443", False),
        ("http://h:8080", "https://h", False),
        ("https://h", "http://h", False),
        ("https://h", "https://h:8443", False),
        ("https://h", "https://h.evil.com", False),
        ("https://h", "https://evil.com/h", False),
        ("https://h", "https://H/a", True),
    ],
)
def test_secrets_go_to_the_same_host_only(left: str, right: str, is_same: bool) -> None:
    assert calls.is_same_host(httpx.URL(left), httpx.URL(right)) is is_same
    assert ApiCall(left, right).is_home is is_same


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("?page=2", "https://api.example.com/v1/rows?page=2"),
        ("next", "https://api.example.com/v1/next"),
        ("/next", "https://api.example.com/next"),
        ("//other.com/a", "https://other.com/a"),
        ("http://other.com/a", "http://other.com/a"),
    ],
)
def test_links_may_be_relative(address: str, url: str) -> None:
    assert call().at(address, "https://api.example.com/v1/rows").url == url


@pytest.mark.parametrize(
    "address",
    ["file:///etc/passwd", "ftp://h/a", "javascript:alert(1)", "https://u:p@h/a", "a" * 70_000],
)
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(DatasetError, match="refers to an address") as caught:
        call().at(address, "https://api.example.com/v1/rows")
    assert "hunter2" not in caught.value.message


def test_parameters_replace_those_of_one_name() -> None:
    made = ApiCall("https://h", "https://h/a?page=1&x=%20").with_params({"page": "2 3"})
    assert httpx.URL(made.url).params == httpx.QueryParams({"page": "2 3", "x": " "})
