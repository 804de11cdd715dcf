"""Who calls: keys and the sessions that handshakes opened."""

import uuid
from collections import OrderedDict
from threading import Lock

from caraway_serving.access import ANONYMOUS, Keyring, Principal

_MOST_SESSIONS = 10_000


class Sessions:
    """Sessions and whose they are. The one that was used least recently makes room."""

    def __init__(self, capacity: int = _MOST_SESSIONS) -> None:
        self._capacity = capacity
        self._principals: OrderedDict[str, Principal] = OrderedDict()
        self._lock = Lock()

    def open(self, principal: Principal) -> str:
        session_id = str(uuid.uuid4())
        with self._lock:
            self._principals[session_id] = principal
            if len(self._principals) > self._capacity:
                self._principals.popitem(last=False)
        return session_id

    def close(self, session_id: str) -> None:
        """Forget a session, if it is one."""
        with self._lock:
            self._principals.pop(session_id, None)

    def find(self, session_id: str) -> Principal | None:
        with self._lock:
            if session_id in self._principals:
                self._principals.move_to_end(session_id)
            return self._principals.get(session_id)


class Identities:
    """Tells the principal of a call; used from every thread of the server."""

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
        return self._keyring.find(credential) or self.sessions.find(credential)
