"""What the gates leave in the scope of a request, and how routes read it."""

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
    return cast(Principal, request.scope.get(PRINCIPAL, ANONYMOUS))


def lease(request: Request) -> Lease | None:
    """Return the memory that the request may take for its body; None: nobody counts it."""
    return cast(Lease | None, request.scope.get(LEASE))


def has_whole_body(request: Request) -> bool:
    """Tell if the body has arrived to its end; the connection says so."""
    return WHOLE_BODY in request.scope


def span(request: Request) -> Span:
    return cast(Span, request.scope.get(SPAN) or spans.start(None))
