"""Sessions, and whose they are."""

from caraway_core.ids import PrincipalId
from caraway_gateway.flight.identities import Identities, Sessions
from caraway_serving.access import ANONYMOUS, Keyring, Principal

ALICE = Principal(PrincipalId("alice"), may_write=True)


def test_least_recently_used_session_makes_room() -> None:
    sessions = Sessions(capacity=2)
    first, second = sessions.open(ALICE), sessions.open(ALICE)
    assert sessions.find(first) == ALICE
    third = sessions.open(ALICE)
    assert sessions.find(second) is None
    assert sessions.find(first) == sessions.find(third) == ALICE


def test_sessions_of_one_key_make_no_others_go() -> None:
    other = Principal(PrincipalId("other"), may_write=True)
    sessions = Sessions(capacity=4, most_each=2)
    kept = sessions.open(other)
    opened = [sessions.open(ALICE) for _ in range(9)]
    assert [sessions.find(each) for each in opened[-2:]] == [ALICE, ALICE]
    assert sessions.find(opened[-3]) is None
    assert sessions.find(kept) == other
    anonymous = [sessions.open(ANONYMOUS) for _ in range(4)]
    assert sessions.find(anonymous[-1]) == ANONYMOUS
    assert len(sessions.quota) == 4


def test_session_is_bound_to_its_principal() -> None:
    known = Identities(Keyring([("a", "rw"), ("b", "ro")]), Sessions())
    owner = known.identify("b")
    assert owner is not None
    assert known.identify(known.sessions.open(owner)) == owner
    assert known.identify("nobody") is None
    assert known.identify(None) is None


def test_sessions_end_with_the_key_that_opened_them() -> None:
    keyring = Keyring([("a", "rw"), ("b", "ro")])
    known = Identities(keyring, Sessions())
    first, second = known.identify("a"), known.identify("b")
    assert first is not None and second is not None
    sessions = known.sessions.open(first), known.sessions.open(second)
    keyring.replace([("a", "rw"), ("c", "ro")])
    assert [known.identify(each) for each in sessions] == [first, None]
    assert known.identify("b") is None


def test_everybody_is_anonymous_without_keys() -> None:
    assert Identities(None, Sessions()).identify(None) == ANONYMOUS
