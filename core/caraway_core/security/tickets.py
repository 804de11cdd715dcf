"""Tickets for parts of answers that executors serve: signed with the token of the cluster.

A ticket is text, `\\0part:FIELDS:MAC`. NUL keeps it apart from SQL text.
"""

import hmac
import json
import time
from dataclasses import dataclass

from caraway_core.errors import InvalidRequestError, NotFoundError
from caraway_core.ids import ExecutorId, PrincipalId, QueryId
from caraway_core.security import signatures

_PREFIX = b"\0part:"
_LONGEST = 4096
_PURPOSE = "ticket"


@dataclass(frozen=True, slots=True)
class PartTicket:
    """Allows a principal to read one offer until a time, in seconds since the epoch."""

    query_id: QueryId
    offer_id: str
    executor_id: ExecutorId
    principal: PrincipalId
    expires_s: int

    def sealed(self, token: str) -> bytes:
        """Return the bytes of the ticket."""
        fields = [
            self.query_id, self.offer_id, self.executor_id, self.principal, self.expires_s
        ]  # fmt: skip
        text = json.dumps(fields, separators=(",", ":"))
        return _PREFIX + f"{text}:{signatures.mac(token, _PURPOSE, text)}".encode()


def is_part(ticket: bytes) -> bool:
    """Return whether a ticket is one of these, be it valid or not."""
    return ticket.startswith(_PREFIX)


def opened(ticket: bytes, token: str, now: float | None = None) -> PartTicket:
    """Return what a ticket says.

    Raises:
        InvalidRequestError: it is not a ticket of this cluster.
        NotFoundError: it has expired.
    """
    text, _, mac = ticket.removeprefix(_PREFIX).decode(errors="replace").rpartition(":")
    expected = signatures.mac(token, _PURPOSE, text)
    is_ours = is_part(ticket) and len(ticket) <= _LONGEST
    if not is_ours or not hmac.compare_digest(mac.encode(), expected.encode()):
        raise InvalidRequestError(
            "the ticket is not valid here; ask a scheduler with GetFlightInfo for a new one"
        )
    query_id, offer_id, executor_id, principal, expires_s = json.loads(text)
    if (time.time() if now is None else now) > expires_s:
        raise NotFoundError("the ticket has expired; run the query again")
    return PartTicket(
        QueryId(query_id), offer_id, ExecutorId(executor_id), PrincipalId(principal), expires_s
    )
