"""Signs requests between processes of a cluster with its token, which is never sent itself.

A signature is `Authorization: Caraway TIME:NONCE:MAC`. The MAC covers the method, the target (path
and query as sent), the time and the nonce.
"""

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from caraway_core.concurrency.clocks import SecondsClock

WINDOW_S = 900.0
"""The allowed clock difference, and how long a request is remembered; the same as in S3."""
_SCHEME = "Caraway "
_BEARER = "Bearer "
_READS = frozenset({"GET", "HEAD"})
_MOST_REMEMBERED = 100_000


def sign(token: str, method: str, target: str, now: float | None = None) -> str:
    """Return the value of `Authorization` for a request."""
    seconds, nonce = int(time.time() if now is None else now), secrets.token_hex(16)
    return f"{_SCHEME}{seconds}:{nonce}:{_mac(token, method, target, seconds, nonce)}"


def mac(token: str, purpose: str, text: str) -> str:
    """Return proof that the author of a text knows the token; for one purpose only."""
    # No HTTP method has a space, so this is never the signature of a request.
    keyed = f"{purpose} \n{text}"
    return hmac.new(token.encode(), keyed.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class Refused:
    """A request without valid proof of the token, and the reason."""

    reason: str


class SignatureGate:
    """Authenticates requests that are signed with the token or carry it.

    Processes sign their requests. A person behind a tunnel may send the token itself. A signed
    request that changes something is accepted only once.
    """

    def __init__(self, token: str, clock: SecondsClock = time.time) -> None:
        self._token = token
        self._clock = clock
        self._seen: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, authorization: str, method: str, target: str) -> Refused | None:
        """Return None if the request is authentic, else the reason for refusal."""
        if authorization.startswith(_BEARER):
            shown = authorization.removeprefix(_BEARER).strip()
            is_token = hmac.compare_digest(shown.encode(), self._token.encode())
            return None if is_token else Refused("the token is wrong")
        if not authorization.startswith(_SCHEME):
            return Refused("the request has no signature or token")
        return self._check_signature(authorization.removeprefix(_SCHEME), method, target)

    def _check_signature(self, text: str, method: str, target: str) -> Refused | None:
        seconds, _, rest = text.partition(":")
        nonce, _, mac = rest.partition(":")
        if not (seconds.isascii() and seconds.isdecimal() and len(seconds) < 16 and nonce):
            return Refused("the signature is malformed")
        expected = _mac(self._token, method, target, int(seconds), nonce)
        if not hmac.compare_digest(mac.encode(), expected.encode()):
            return Refused("the signature does not match the token and the request")
        apart_s = self._clock() - int(seconds)
        if abs(apart_s) > WINDOW_S:
            return Refused(
                f"the clocks of the two hosts differ by {abs(apart_s):.0f} s; synchronize them"
            )
        if method not in _READS and not self._is_first(mac):
            return Refused("the request was already received")
        return None

    def _is_first(self, mac: str) -> bool:
        now = self._clock()
        with self._lock:
            while self._seen:
                oldest, at = next(iter(self._seen.items()))
                # Kept for two windows, because clocks may differ in both directions.
                if now - at <= 2 * WINDOW_S and len(self._seen) < _MOST_REMEMBERED:
                    break
                del self._seen[oldest]
            if mac in self._seen:
                return False
            self._seen[mac] = now
            return True


def target_of(scope: Mapping[str, Any]) -> str:
    """Return the target of a received request, exactly as it was sent."""
    path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    query: bytes = scope.get("query_string") or b""
    return (path + b"?" + query if query else path).decode("latin-1")


def _mac(token: str, method: str, target: str, seconds: int, nonce: str) -> str:
    text = f"{method}\n{target}\n{seconds}\n{nonce}"
    return hmac.new(token.encode(), text.encode(), hashlib.sha256).hexdigest()
