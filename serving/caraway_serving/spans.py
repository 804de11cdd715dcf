"""The trace context of a request, in W3C format."""

import re
from contextvars import ContextVar
from dataclasses import dataclass

from caraway_core import ids
from caraway_core.ids import PrincipalId

_TRACEPARENT = re.compile(
    r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?", re.DOTALL
)
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
        return Span(self.trace_id, ids.random_hex(8), self.span_id, self.principal)


def start(traceparent: str | None) -> Span:
    """Continue the caller's trace if the header is valid; otherwise start a new one."""
    match = _TRACEPARENT.fullmatch(traceparent or "")
    if match:
        version, trace, parent, more = match.groups()
        # Later versions may add fields; `ff` is not a version.
        is_known = version != "ff" and not (version == "00" and more)
        if is_known and trace != _NO_TRACE and parent != _NO_SPAN:
            return Span(trace, ids.random_hex(8), parent)
    return Span(ids.random_hex(), ids.random_hex(8))


current: ContextVar[Span | None] = ContextVar("caraway-span", default=None)
"""The span of the statement that the current asyncio task works for."""
