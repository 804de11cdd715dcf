"""Sessions, and whose they are."""

from caraway_core.ids import PrincipalId
from caraway_scheduler.flight.identities import Identities, Sessions
from caraway_serving.access import ANONYMOUS, Keyring, Principal

ALICE = Principal(PrincipalId("alice"), may_write=True)


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
