"""The gate in front of every call: who makes it, under which trace, and what follows its end."""

import threading
from collections.abc import Callable
from typing import Protocol

from pyarrow import flight

from caraway_core.protocols.offers import digest
from caraway_gateway.flight.identities import Identities
from caraway_scheduler.queries.requests import QueryRequest
from caraway_serving import limits, spans
from caraway_serving.access import ANONYMOUS, Principal
from caraway_serving.flight import credentials, statuses
from caraway_serving.flight.credentials import Headers
from caraway_serving.limits import InForce
from caraway_serving.tallies import ApiTallies

KEY = "caller"
_READS_ONE = "x-spice-user-agent"
_AGENT_HEADERS = (_READS_ONE, "user-agent")
ENDPOINTS = "x-caraway-endpoints"
"""`all` or `one`: how many endpoints of an answer the client reads."""
_NO_KEY = (
    "this runtime asks for a key; send it as metadata `authorization: Bearer KEY` or "
    "`x-api-key: KEY`, or as the password of a handshake"
)
_WRONG_KEY = "the key is not known"


class Caller(flight.ServerMiddleware):  # type: ignore[misc] # pyarrow has no types
    """One call and its principal."""

    def __init__(
        self, principal: Principal, headers: Headers, reply: dict[str, str] | None = None
    ) -> None:
        self.principal = principal
        self.span = spans.start(credentials.text(headers, "traceparent"))
        self._headers = headers
        self._reply = reply or {}
        self.credential = digest(credentials.credential(headers) or "")
        """The digest of the key or session id of the call."""
        self._endings: list[Callable[[], None]] = []
        self.end_session: Callable[[], None] = lambda: None
        """Ends the session by whose id the call was made, if it was."""

    @property
    def reads_endpoints(self) -> bool:
        """True if the client may be sent to several endpoints.

        Clients that name themselves as below read the first one only.
        """
        wish = (credentials.text(self._headers, ENDPOINTS) or "").lower()
        if wish in ("one", "all"):
            return wish == "all"
        return not credentials.text(self._headers, _READS_ONE)

    def request(self, sql: str) -> QueryRequest:
        cache_control = (credentials.text(self._headers, "cache-control") or "").lower()
        bypass = "no-cache" in cache_control or "no-store" in cache_control
        agents = (credentials.text(self._headers, name) for name in _AGENT_HEADERS)
        return QueryRequest(
            sql=sql,
            principal=self.principal,
            span=self.span,
            protocol="flight",
            cache_control="bypass" if bypass else "use",
            user_agent=next(filter(None, agents), ""),
        )

    def at_end(self, action: Callable[[], None]) -> None:
        """Do something after the call, however it ends: also when the client goes away."""
        self._endings.append(action)

    def sending_headers(self) -> dict[str, str]:
        return self._reply

    def call_completed(self, exception: Exception | None) -> None:
        for action in self._endings:
            action()


def of(context: flight.ServerCallContext) -> Caller:
    """Return who makes this call; the gate has let it pass."""
    caller = context.get_middleware(KEY)
    assert isinstance(caller, Caller)
    return caller


class CallGate(flight.ServerMiddlewareFactory):  # type: ignore[misc] # pyarrow has no types
    """Refuses calls without a valid key where keys are configured, and those that are too many.

    A handshake counts as nothing: it asks for nothing yet.
    """

    def __init__(
        self, known: Identities, handshake: "Handshake", in_force: InForce, tallies: ApiTallies
    ) -> None:
        self._known = known
        self.handshake = handshake
        self._in_force = in_force
        self._tallies = tallies

    def start_call(self, info: flight.CallInfo, headers: Headers) -> Caller:
        credential = credentials.credential(headers)
        is_handshake = info.method == flight.FlightMethod.HANDSHAKE
        if is_handshake and credential is None and self._known.are_asked_for:
            # The key may be in the payload, which only the handshake itself can read.
            self.handshake.note_session(None)
            return Caller(ANONYMOUS, headers)
        principal = self._known.identify(credential)
        if principal is None:
            raise statuses.Unauthenticated(_WRONG_KEY if credential else _NO_KEY)
        if not is_handshake:
            # Behind the keys, as over HTTP.
            self._count()
        caller = Caller(principal, headers, self._open(principal) if is_handshake else None)
        if credential:
            caller.end_session = lambda: self._known.sessions.close(credential)
        return caller

    def _count(self) -> None:
        bucket = self._in_force.bucket
        if wait_s := bucket.take_token():
            self._tallies.limited_requests["api_rps",] += 1
            wait = limits.retry_after(wait_s)
            # Arrow has no way to send RESOURCE_EXHAUSTED.
            text = f"{limits.too_many(bucket.rate or 0)}; try again in {wait} s"
            raise statuses.Unavailable(text)

    def _open(self, principal: Principal) -> dict[str, str]:
        session_id = self._known.sessions.open(principal)
        self.handshake.note_session(session_id)
        reply = {"x-session-id": session_id}
        if self._known.are_asked_for:
            reply["authorization"] = f"Bearer {session_id}"
        return reply


class Incoming(Protocol):
    """The message of the client in a handshake."""

    def read(self) -> bytes: ...


class Outgoing(Protocol):
    """The reply to the client."""

    def write(self, message: bytes) -> None: ...


class Handshake(flight.ServerAuthHandler):  # type: ignore[misc] # pyarrow has no types
    """Answers handshakes with a session id; the gate checks the keys."""

    def __init__(self, known: Identities) -> None:
        self._known = known
        # Arrow hands no context to `authenticate`, but calls it in the thread of the gate. What
        # `threading.local` holds is gone by then: such threads are new to Python at each entry.
        self._begun: dict[int, str | None] = {}

    def note_session(self, session_id: str | None) -> None:
        """Note what the gate found in this thread's call: None leaves it to the payload."""
        self._begun[threading.get_ident()] = session_id

    def authenticate(self, outgoing: Outgoing, incoming: Incoming) -> None:
        session_id = self._begun.pop(threading.get_ident(), None) or self._from_payload(incoming)
        outgoing.write(session_id.encode())

    def is_valid(self, token: bytes) -> bytes:
        return b""

    def _from_payload(self, incoming: Incoming) -> str:
        try:
            key = flight.BasicAuth.deserialize(incoming.read()).password.decode()
        except Exception:  # noqa: BLE001 -- any payload can arrive
            # No payload, or one that is something else: either way there is no key.
            key = ""
        principal = self._known.identify(key)
        if principal is None:
            raise statuses.Unauthenticated(_WRONG_KEY if key else _NO_KEY)
        return self._known.sessions.open(principal)
