"""The Redis in which the head keeps its state, so that the state survives the head."""

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from caraway_core.errors import CarawayError
from caraway_core.ray_nodes import start_hook
from caraway_core.security import secret_urls

_TLS = "rediss://"
_ANSWER_S = 5.0
_PING = b"PING\r\n"
_ANSWER_BYTES = 256
_LOADING = b"-LOADING"
_REFUSED = b"-TLS"
_FORM = "write redis://[USER:PASSWORD@]HOST[:PORT], or rediss:// for TLS"


@dataclass(frozen=True, slots=True)
class GcsStore:
    """A Redis server in Ray's notation, and the prefix of this cluster's keys."""

    address: str
    user: str = ""
    password: str = field(default="", repr=False)
    prefix: str = "caraway"

    @classmethod
    def parse(cls, url: str, prefix: str = "caraway") -> "GcsStore":
        """Parse the URL of a state store; Ray always uses database 0.

        Raises:
            CarawayError: the URL is not a Redis URL that Ray supports.
        """
        try:
            parts = secret_urls.split(url)
        except ValueError as exc:
            raise CarawayError(f"the URL of the state store is invalid: {exc}; {_FORM}") from None
        if parts.scheme not in ("redis", "rediss") or not parts.hostname:
            raise CarawayError(f"the state store '{parts.scheme}://...' is not a Redis; {_FORM}")
        scheme = _TLS if parts.scheme == "rediss" else ""
        address = f"{scheme}{parts.hostname}:{parts.port or 6379}"
        password, user = unquote(parts.password or ""), unquote(parts.username or "")
        return cls(address, user, password, dict(parse_qsl(parts.query)).get("prefix", prefix))

    def require(self) -> None:
        """Check that the Redis answers; otherwise Ray retries for a minute and exits.

        A Redis that is paused accepts connections. One that loads its data refuses commands.

        Raises:
            CarawayError: the Redis cannot be reached, or is not ready.
        """
        host, _, port = self.address.removeprefix(_TLS).rpartition(":")
        try:
            with socket.create_connection((host, int(port)), _ANSWER_S) as plain:
                answer = self._answer_of(plain)
        except OSError as exc:
            raise CarawayError(f"cannot reach the Redis at {host}:{port}: {exc}") from exc
        if not answer or answer.startswith(_LOADING):
            cause = "it loads its data" if answer else "it closed the connection"
            raise CarawayError(f"the Redis at {host}:{port} is not ready: {cause}")

    def _answer_of(self, plain: socket.socket) -> bytes:
        """Return the beginning of the answer to a command; without the password it is an error."""
        if not self.address.startswith(_TLS):
            plain.sendall(_PING)
            return plain.recv(_ANSWER_BYTES)
        # Nothing secret is sent. Ray checks the certificate.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            with context.wrap_socket(plain) as secure:
                secure.sendall(_PING)
                return secure.recv(_ANSWER_BYTES)
        except ssl.SSLError:
            return _REFUSED  # For example because it wants a certificate: it answers.

    def environment(self) -> Mapping[str, str]:
        """Return the environment variables of a head that keeps its state there."""
        return {
            "RAY_REDIS_ADDRESS": self.address,
            "RAY_external_storage_namespace": self.prefix,
            **self._login(),
        }

    def _login(self) -> Mapping[str, str]:
        return {start_hook.PASSWORD: self.password} if self.password else {}
