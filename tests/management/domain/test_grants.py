from datetime import timedelta

import pytest

from caraway_management.domain import grants, scopes
from caraway_management.domain.refusals import RefusedError
from tests.kit.management import BEGAN

LATER = BEGAN + timedelta(days=1)


def test_scopes_are_sorted_and_everything_stands_for_all() -> None:
    held = scopes.expand(["*"])
    asked = ["secrets:read", "apps:write", "apps:write"]
    assert grants.check_scopes(asked, held) == ["apps:write", "secrets:read"]
    assert grants.check_scopes(["apps:read", "*"], held) == ["*"]


@pytest.mark.parametrize(
    ("asked", "status"),
    [([], 400), (["root"], 400), (["apps"], 400), (["apps:delete"], 403), (["*"], 403)],
)
def test_scopes_that_cannot_be_given(asked: list[str], status: int) -> None:
    with pytest.raises(RefusedError) as refused:
        grants.check_scopes(asked, scopes.expand(["apps:write"]))
    assert refused.value.status == status


def test_an_expiry_is_in_the_future_and_not_after_that_of_the_maker() -> None:
    assert grants.check_expiry(None, BEGAN) is None
    assert grants.check_expiry(None, BEGAN, LATER) == LATER
    assert grants.check_expiry(LATER, BEGAN, LATER) == LATER
    for asked, latest in [
        (BEGAN, None),
        (BEGAN + grants.LONGEST_LIFE + timedelta(seconds=1), None),
        (LATER + timedelta(seconds=1), LATER),
    ]:
        with pytest.raises(RefusedError):
            grants.check_expiry(asked, BEGAN, latest)


@pytest.mark.parametrize(
    "uri",
    [
        "https://example.com/callback?a=b",
        "http://127.0.0.1/callback",
        "http://[::1]:5555/",
        "http://localhost:1",
    ],
)
def test_safe_redirects(uri: str) -> None:
    assert grants.check_redirects([uri]) == [uri]
    assert grants.is_registered(uri, [uri])


@pytest.mark.parametrize(
    ("uri", "known"),
    [
        ("https://example.com/a", "https://example.com/b"),
        ("https://example.com:444/a", "https://example.com/a"),
        ("https://example.com/a?x", "https://example.com/a"),
        ("https://EXAMPLE.com/a", "https://example.com/a"),
        ("http://localhost/a", "http://127.0.0.1/a"),
        ("http://127.0.0.1:1/b", "http://127.0.0.1/a"),
        ("https://127.0.0.1:1/a", "https://127.0.0.1/a"),
        ("http://user@127.0.0.1:1/a", "http://127.0.0.1/a"),
        ("http://127.0.0.1:99999/a", "http://127.0.0.1/a"),
        ("https://e.com/\r\nx: y", "https://e.com/"),
    ],
)
def test_other_redirects_are_not_registered(uri: str, known: str) -> None:
    assert not grants.is_registered(uri, [known])


def test_only_the_port_of_a_loopback_address_may_differ() -> None:
    assert grants.is_registered("http://127.0.0.1:7777/a", ["http://127.0.0.1/a"])
    assert grants.is_registered("http://[::1]:7777/a", ["http://[::1]:1/a"])


@pytest.mark.parametrize("path", ["/", "/auth/token?code=A-B", "/a//b"])
def test_paths_of_this_service(path: str) -> None:
    assert grants.check_return(path) == path


@pytest.mark.parametrize("path", ["", "a", "//a", "/\\a", "/a\\b", "/a b", "/a\n", "https://a"])
def test_other_places_to_go_back_to(path: str) -> None:
    with pytest.raises(RefusedError):
        grants.check_return(path)
