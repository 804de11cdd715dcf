"""The content of descriptors and tickets: SQL text, and in a ticket its waiting answer."""

import re
from dataclasses import dataclass

from pyarrow import flight

from caraway_core.errors import InvalidQueryError
from caraway_core.ids import QueryId

# A comment, so that the ticket is valid SQL wherever it is read.
_HAND_OVER = re.compile(r"\n--waiting:([0-9a-f-]{36})\Z")
WHAT_WORKS = (
    "send the SQL text itself, in UTF-8, as the command of GetFlightInfo or GetSchema, or as the "
    "ticket of DoGet"
)


@dataclass(frozen=True, slots=True)
class TicketText:
    """A statement, and the id under which its answer may wait."""

    sql: str
    query_id: QueryId | None = None

    def encode(self) -> bytes:
        suffix = f"\n--waiting:{self.query_id}" if self.query_id else ""
        return (self.sql + suffix).encode()


def read_descriptor(descriptor: flight.FlightDescriptor) -> str:
    """Return the SQL text of a descriptor.

    Raises:
        InvalidQueryError: there is none in it.
    """
    if descriptor.descriptor_type != flight.DescriptorType.CMD:
        raise InvalidQueryError(f"descriptors with a path cannot be read; {WHAT_WORKS}")
    return _sql(descriptor.command)


def read_target(descriptor: flight.FlightDescriptor) -> str:
    """Return the dataset that an upload is for: the parts of a path, or the text of a command.

    Raises:
        InvalidQueryError: none is named.
    """
    if descriptor.descriptor_type == flight.DescriptorType.PATH:
        parts = [_text(part) for part in descriptor.path]
    else:
        parts = [_text(descriptor.command)]
    if not all(parts) or not parts or len(parts) > 2:
        raise InvalidQueryError(
            "name the dataset to write to, as the path or the command of the descriptor: "
            "`orders`, or `sales` and `orders`"
        )
    return ".".join(parts)


def read_ticket(ticket: flight.Ticket) -> TicketText:
    """Return what a ticket says, whether it is one of ours or SQL text.

    Raises:
        InvalidQueryError: as with descriptors.
    """
    sql = _sql(ticket.ticket)
    match = _HAND_OVER.search(sql)
    return TicketText(sql[: match.start()], QueryId(match[1])) if match else TicketText(sql)


def waiting_in(ticket: bytes) -> QueryId | None:
    """Return the id under which the answer of a ticket waits; None: it names none."""
    match = _HAND_OVER.search(ticket.decode(errors="replace"))
    return QueryId(match[1]) if match else None


def _sql(command: bytes) -> str:
    return _text(command)


def _text(command: bytes) -> str:
    try:
        return command.decode()
    except UnicodeDecodeError as exc:
        raise InvalidQueryError(f"the command is not UTF-8 text; {WHAT_WORKS}") from exc
