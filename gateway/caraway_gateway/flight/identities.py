"""Identifies callers by their keys, or by the sessions that handshakes opened."""

import uuid
from threading import Lock

from caraway_core.concurrency.quotas import Quota, QuotaLimits
from caraway_core.ids import PUBLIC
from caraway_serving.access import ANONYMOUS, Keyring, Principal

_MOST_SESSIONS = 10_000


class Sessions:
    """Sessions and whose they are. Those that were used least recently make room."""

    def __init__(self, capacity: int = _MOST_SESSIONS, most_each: int | None = None) -> None:
        self.quota: Quota[str] = Quota(
            "sessions", QuotaLimits(most=capacity, most_each=most_each, everybody=PUBLIC)
        )
        self._principals: dict[str, Principal] = {}
        self._lock = Lock()

    def open(self, principal: Principal) -> str:
        session_id = str(uuid.uuid4())
        with self._lock:
            for gone in self.quota.add(principal.id, session_id):
                del self._principals[gone]
            self._principals[session_id] = principal
        return session_id

    def close(self, session_id: str) -> None:
        """Forget a session, if it is one."""
        with self._lock:
            self.quota.drop(session_id)
            self._principals.pop(session_id, None)

    def find(self, session_id: str) -> Principal | None:
        with self._lock:
            self.quota.use(session_id)
            return self._principals.get(session_id)


class Identities:
    """Returns the principal of a call; used from every thread of the server."""

    def __init__(self, keyring: Keyring | None, sessions: Sessions) -> None:
        self._keyring = keyring
        self.sessions = sessions

    @property
    def are_asked_for(self) -> bool:
        return self._keyring is not None

    def identify(self, credential: str | None) -> Principal | None:
        """Find whose key or session id this is; everybody is anonymous without keys."""
        if self._keyring is None:
            return ANONYMOUS
        if not credential:
            return None
        if principal := self._keyring.find(credential):
            return principal
        # The key that opened the session may have been replaced since.
        owner = self.sessions.find(credential)
        return owner if owner and self._keyring.knows(owner) else None
