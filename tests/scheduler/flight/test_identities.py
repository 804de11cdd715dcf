"""Credentials and sessions."""

import base64

import pytest

from caraway_core.ids import PrincipalId
from caraway_scheduler.flight.identities import Headers, Identities, Sessions, credential
from caraway_serving.access import ANONYMOUS, Keyring, Principal

ALICE = Principal(PrincipalId("alice"), may_write=True)
BASIC = base64.b64encode(b"user:pass:word").decode()


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"authorization": ["Bearer k"]}, "k"),
        ({"x-api-key": ["k"], "authorization": ["Bearer other"]}, "k"),
        ({"authorization": [f"Basic {BASIC}"]}, "pass:word"),
        ({"authorization": ["Basic %%%"]}, None),
        ({"authorization": ["Digest k"]}, None),
        ({"auth-token-bin": [b"session"]}, "session"),
        ({"auth-token-bin": [b""]}, None),
    ],
)
def test_credential_comes_from_the_headers(headers: Headers, expected: str | None) -> None:
    assert (credential(headers) or None) == expected


def test_least_recently_used_session_makes_room() -> None:
    sessions = Sessions(capacity=2)
    first, second = sessions.open(ALICE), sessions.open(ALICE)
    assert sessions.find(first) == ALICE
    third = sessions.open(ALICE)
    assert sessions.find(second) is None
    assert sessions.find(first) == sessions.find(third) == ALICE


def test_session_is_bound_to_its_principal() -> None:
    known = Identities(Keyring([("a", "rw"), ("b", "ro")]), Sessions())
    owner = known.identify("b")
    assert owner is not None
    assert known.identify(known.sessions.open(owner)) == owner
    assert known.identify("nobody") is None
    assert known.identify(None) is None


def test_everybody_is_anonymous_without_keys() -> None:
    assert Identities(None, Sessions()).identify(None) == ANONYMOUS
