"""Parameters of token requests: those that are missing, and scopes that were not granted."""

from collections.abc import Sequence

import pytest

from caraway_management.credentials import oauth
from caraway_management.credentials.oauth import GrantError


@pytest.mark.parametrize("parameters", [{}, {"code": ""}, {"Code": "a"}])
def test_parameters_that_are_missing(parameters: dict[str, str]) -> None:
    with pytest.raises(GrantError, match="code is missing") as caught:
        oauth.one(parameters, "code")
    assert (caught.value.code, caught.value.status) == ("invalid_request", 400)


def test_parameters_that_are_there() -> None:
    assert oauth.one({"code": "a b"}, "code") == "a b"


@pytest.mark.parametrize(
    ("asked", "granted", "scopes"),
    [
        (None, ["apps:read"], ["apps:read"]),
        ("", ["apps:write", "apps:read"], ["apps:write", "apps:read"]),
        ("  ", ["apps:read"], ["apps:read"]),
        ("apps:read", ["apps:read", "config:read"], ["apps:read"]),
        ("apps:read apps:read", ["apps:read"], ["apps:read"]),
        ("apps:read", ["apps:delete"], ["apps:read"]),
        ("config:read apps:read", ["*"], ["apps:read", "config:read"]),
        ("*", ["*"], ["*"]),
    ],
)
def test_narrower_scopes(asked: str | None, granted: Sequence[str], scopes: list[str]) -> None:
    parameters = {} if asked is None else {"scope": asked}
    assert oauth.narrower(parameters, granted) == scopes


@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        ("apps:write", ["apps:read"]),
        ("apps:read", []),
        ("*", ["apps:delete"]),
        ("apps:read secrets:read", ["apps:read"]),
        ("apps:none", ["*"]),
        ("APPS:READ", ["*"]),
    ],
)
def test_wider_scopes_are_refused(asked: str, granted: Sequence[str]) -> None:
    with pytest.raises(GrantError) as caught:
        oauth.narrower({"scope": asked}, granted)
    assert caught.value.code == "invalid_scope"
