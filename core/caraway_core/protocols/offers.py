"""Parts of an answer that executors serve to clients themselves, over Flight.

A scheduler makes an offer for each task of the last stage. A client takes it with a ticket.
"""

import hashlib
import secrets
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.ids import ExecutorId, PrincipalId

MOST_WAIT_S = 3600.0
"""The longest time that rows may wait to be fetched."""


@dataclass(frozen=True, slots=True)
class FlightPlace:
    """Where an executor serves its parts of answers.

    `location` is a URI of Flight, as clients reach it. `asks_certificates` means that it takes
    only clients with a certificate.
    """

    location: str
    asks_certificates: bool = False

    @property
    def is_secure(self) -> bool:
        """True if it uses TLS."""
        return self.location.startswith("grpc+tls://")


@dataclass(frozen=True, slots=True)
class OfferOrder:
    """Asks that the answer of a statement is offered in parts, if it can be.

    Only the caller whose credential has this digest may read them; an empty digest means anyone
    with a ticket. Rows wait for `wait_s`. Executors without TLS, or that do not ask for
    certificates, are left out if this process `is_secure`, or asks for them.
    """

    principal: PrincipalId
    credential: str = field(repr=False)
    wait_s: float
    is_secure: bool = False
    asks_certificates: bool = False

    def allows(self, place: FlightPlace | None) -> bool:
        """Return whether clients may be sent to a place."""
        return (
            place is not None
            and place.is_secure >= self.is_secure
            and place.asks_certificates >= self.asks_certificates
        )


@dataclass(frozen=True, slots=True)
class Offer:
    """The offer of an executor to a client: the rows of a task, in the columns of the statement.

    The task of one that is not `is_eager` starts when it is taken.
    """

    offer_id: str
    credential: str = field(repr=False)
    wait_s: float
    schema: pa.Schema = field(repr=False)
    is_eager: bool = True


@dataclass(frozen=True, slots=True)
class OfferedPart:
    """A part of an answer: which executor offers it, and where that serves it."""

    offer_id: str
    executor_id: ExecutorId
    location: str


@dataclass(frozen=True, slots=True)
class OfferOutcome:
    """The part of an offer that was read."""

    rows: int
    size_bytes: int


def new_offer_id() -> str:
    """Return the id of a new offer, which cannot be guessed."""
    return secrets.token_hex(16)


def digest(credential: str) -> str:
    """Return the digest of a credential; that of none is empty."""
    return hashlib.sha256(credential.encode()).hexdigest() if credential else ""
