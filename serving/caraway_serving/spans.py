"""The trace context of a request, in W3C format."""

import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass

from caraway_core.ids import PrincipalId

_TRACEPARENT = re.compile(r"^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_NO_TRACE = "0" * 32
_NO_SPAN = "0" * 16


@dataclass(frozen=True, slots=True)
class Span:
    """The ids of one unit of work within a trace."""

    trace_id: str
    span_id: str
    parent_span_id: str | None = None
    principal: PrincipalId | None = None
    """The principal that started the work; None for the runtime itself, or if unknown."""

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-01"

    def child(self) -> "Span":
        return Span(self.trace_id, secrets.token_hex(8), self.span_id, self.principal)


def start(traceparent: str | None) -> Span:
    """Continue the caller's trace if the header is valid; otherwise start a new one."""
    match = _TRACEPARENT.match(traceparent or "")
    if match and match[1] != _NO_TRACE and match[2] != _NO_SPAN and traceparent[:2] != "ff":  # type: ignore[index] # a match means it is text
        return Span(match[1], secrets.token_hex(8), match[2])
    return Span(secrets.token_hex(16), secrets.token_hex(8))


current: ContextVar[Span | None] = ContextVar("caraway-span", default=None)
"""The span of the statement that the current asyncio task works for."""
