"""Tickets for parts of answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import InvalidRequestError, NotFoundError
from caraway_core.ids import ExecutorId, PrincipalId, QueryId
from caraway_core.security import signatures, tickets
from caraway_core.security.tickets import PartTicket

TOKEN = "tok-en"
TICKET = PartTicket(QueryId("q"), "offer", ExecutorId('e:"1'), PrincipalId("key-1"), 1000)


def test_a_ticket_says_what_was_sealed_until_it_expires() -> None:
    sealed = TICKET.sealed(TOKEN)
    assert tickets.is_part(sealed)
    assert tickets.opened(sealed, TOKEN, now=1000) == TICKET
    with pytest.raises(NotFoundError, match="expired; run the query again"):
        tickets.opened(sealed, TOKEN, now=1001)


def test_a_changed_or_foreign_ticket_is_refused() -> None:
    sealed = TICKET.sealed(TOKEN)
    spoilt = [sealed.replace(b"key-1", b"key-2"), sealed[:-1], sealed[1:], b"", b"\0part:" * 9]
    spoilt += [TICKET.sealed("another token"), sealed + b" " * 5000, b"\0part:[]:\xff"]
    for each in spoilt:
        with pytest.raises(InvalidRequestError, match="not valid here"):
            tickets.opened(each, TOKEN, now=1000)


def test_the_signature_of_a_ticket_is_none_of_a_request() -> None:
    assert signatures.mac(TOKEN, "ticket", "/x") != signatures.mac(TOKEN, "other", "/x")
    gate = signatures.SignatureGate(TOKEN, lambda: 1000.0)
    forged = f"Caraway 1000:n:{signatures.mac(TOKEN, 'ticket', '')}"
    assert gate.check(forged, "ticket ", "") is not None


TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


@given(TEXT, TEXT, TEXT, TEXT, st.integers(0, 2**40))
def test_any_fields_are_sealed_apart(
    query: str, offer: str, executor: str, principal: str, expires_s: int
) -> None:
    ticket = PartTicket(
        QueryId(query), offer, ExecutorId(executor), PrincipalId(principal), expires_s
    )
    assert tickets.opened(ticket.sealed(TOKEN), TOKEN, now=expires_s) == ticket


@given(st.binary(max_size=60), st.booleans())
def test_any_other_bytes_are_refused(content: bytes, has_prefix: bool) -> None:
    with pytest.raises(InvalidRequestError, match="not valid here"):
        tickets.opened(b"\0part:" + content if has_prefix else content, TOKEN, now=0)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_each_changed_byte_is_noticed(place: int, change: int) -> None:
    sealed = bytearray(TICKET.sealed(TOKEN))
    sealed[place % len(sealed)] ^= change
    with pytest.raises(InvalidRequestError, match="not valid here"):
        tickets.opened(bytes(sealed), TOKEN, now=0)
