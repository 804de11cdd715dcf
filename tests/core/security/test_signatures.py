"""Requests between processes prove the token without sending it."""

import pytest

from caraway_core.security import signatures
from caraway_core.security.signatures import WINDOW_S, Refused, SignatureGate
from tests.kit.clocks import Clock

TOKEN, PATH = "tok-en", "/internal/executors/a%20b/drain?x=1"


def gate(now: float = 1_000_000.0) -> SignatureGate:
    return SignatureGate(TOKEN, lambda: now)


def signed(method: str = "POST", path: str = PATH, token: str = TOKEN, at: float = 1e6) -> str:
    return signatures.sign(token, method, path, at)


def test_a_signature_lets_its_request_in_and_does_not_hold_the_token() -> None:
    assert gate().check(signed(), "POST", PATH) is None
    assert TOKEN not in signed()
    assert signed() != signed()


@pytest.mark.parametrize(
    ("authorization", "reason"),
    [
        ("", "no signature or token"),
        ("Bearer", "no signature or token"),
        ("Bearer ", "the token is wrong"),
        ("Bearer tok-e", "the token is wrong"),
        ("Bearer \xe9", "the token is wrong"),
        (f"Basic {TOKEN}", "no signature or token"),
        (TOKEN, "no signature or token"),
        ("Caraway ", "is malformed"),
        ("Caraway 1000000", "is malformed"),
        ("Caraway x:y:z", "is malformed"),
        ("Caraway \u0661:n:m", "is malformed"),
        ("Caraway 1000000::", "is malformed"),
        (f"Caraway {'9' * 400}:n:m", "is malformed"),
        ("Caraway 1000000:n:\xe9", "does not match the token"),
        (signed(token="other"), "does not match the token"),
        (signed(token=""), "does not match the token"),
        (signed("GET"), "does not match the token and the request"),
        (signed(path="/internal/executors/b/drain"), "does not match the token and the request"),
        (signed().replace("Caraway 1", "Caraway 2"), "does not match the token"),
        (signed(at=1e6 - WINDOW_S - 1), "clocks of the two hosts differ by 901 s"),
        (signed(at=1e6 + WINDOW_S + 1), "clocks of the two hosts differ by 901 s"),
    ],
)
def test_invalid_signatures_are_rejected_with_the_reason(authorization: str, reason: str) -> None:
    refused = gate().check(authorization, "POST", PATH)

    assert isinstance(refused, Refused) and reason in refused.reason
    assert TOKEN not in refused.reason


def test_a_person_may_send_the_token() -> None:
    assert gate().check(f"Bearer {TOKEN}", "POST", PATH) is None


@pytest.mark.parametrize("skew_s", [-WINDOW_S, 0.0, WINDOW_S])
def test_a_change_is_taken_once_for_as_long_as_its_signature_is_good(skew_s: float) -> None:
    clock = Clock(1e6)
    door = SignatureGate(TOKEN, clock)
    change = signed(at=1e6 + skew_s)
    assert door.check(change, "POST", PATH) is None

    for _ in range(40):
        assert door.check(change, "POST", PATH) is not None
        clock.now += WINDOW_S / 10
        door.check(signed(at=clock.now), "POST", PATH)


def test_a_read_may_be_sent_again() -> None:
    door, read = gate(), signed("GET")
    assert [door.check(read, "GET", PATH) for _ in range(2)] == [None, None]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "_MOST_REMEMBERED", 3)
    door = gate()
    for _ in range(10):
        assert door.check(signed(), "POST", PATH) is None
    assert len(door._seen) == 3


@pytest.mark.parametrize(
    ("scope", "target"),
    [
        ({"path": "/a b", "raw_path": b"/a%20b", "query_string": b"x=1"}, "/a%20b?x=1"),
        ({"path": "/a", "raw_path": b"/a", "query_string": b""}, "/a"),
        ({"path": "/a b"}, "/a%20b"),
    ],
)
def test_a_target_is_what_was_sent(scope: dict[str, object], target: str) -> None:
    assert signatures.target_of(scope) == target
