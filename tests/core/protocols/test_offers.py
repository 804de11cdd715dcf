"""Clients are sent only to executors that are as safe as the scheduler that sends them."""

from itertools import product

import pytest

from caraway_core.ids import PrincipalId
from caraway_core.protocols import offers
from caraway_core.protocols.offers import FlightPlace, OfferOrder


@pytest.mark.parametrize(
    ("location", "is_secure"),
    [("grpc+tls://h:1", True), ("grpc://h:1", False), ("grpc+tcp://h:1", False),
     ("grpc://grpc+tls://h", False), ("", False)],
)  # fmt: skip
def test_tls_is_read_from_the_scheme(location: str, is_secure: bool) -> None:
    assert FlightPlace(location).is_secure is is_secure


def test_no_client_is_sent_to_a_weaker_place() -> None:
    for has_tls, asks, wants_tls, wants_asking in product((False, True), repeat=4):
        place = FlightPlace("grpc+tls://h:1" if has_tls else "grpc://h:1", asks)
        order = OfferOrder(PrincipalId("p"), "", 1.0, wants_tls, wants_asking)
        is_weaker = (wants_tls and not has_tls) or (wants_asking and not asks)
        assert order.allows(place) is not is_weaker
        assert order.allows(None) is False


def test_ids_and_credentials_are_not_shown() -> None:
    assert offers.digest("") == "" and offers.digest("secret") != offers.digest("secret ")
    order = OfferOrder(PrincipalId("p"), offers.digest("secret"), 1.0)
    assert offers.digest("secret") not in repr(order)
    ids = {offers.new_offer_id() for _ in range(100)}
    assert len(ids) == 100 and all(len(each) == 32 for each in ids)
