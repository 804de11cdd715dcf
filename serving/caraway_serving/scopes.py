"""Reads what the gates store in the scope of a request."""

from typing import cast

from starlette.requests import Request

from caraway_serving import spans
from caraway_serving.access import ANONYMOUS, Principal
from caraway_serving.http_connections import WHOLE_BODY
from caraway_serving.room import Lease
from caraway_serving.spans import Span

PRINCIPAL = "caraway.principal"
SPAN = "caraway.span"
LEASE = "caraway.lease"


def principal(request: Request) -> Principal:
    """Return the principal of a request."""
    return cast(Principal, request.scope.get(PRINCIPAL, ANONYMOUS))


def lease(request: Request) -> Lease | None:
    """Return the lease for the memory of the body, or None if it is not counted."""
    return cast(Lease | None, request.scope.get(LEASE))


def has_whole_body(request: Request) -> bool:
    """Return whether the whole body has arrived, as the connection reports."""
    return WHOLE_BODY in request.scope


def span(request: Request) -> Span:
    """Return the span of a request."""
    return cast(Span, request.scope.get(SPAN) or spans.start(None))
