"""TLS from PEM files, reloaded when they change."""

import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from caraway_core.errors import ManifestError, Problem

logger = logging.getLogger(__name__)


ClientAuth = Literal["none", "request", "required"]
_VERIFY: Mapping[ClientAuth, ssl.VerifyMode] = {
    "none": ssl.CERT_NONE,
    "request": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The files for a server that cannot take a context, in PEM.

    With `client_ca` it takes only clients whose certificate these authorities have signed.
    """

    certificate: bytes
    key: bytes = field(repr=False)
    client_ca: bytes | None = None


@dataclass(slots=True)
class Certificate:
    """A server certificate; connections opened after a reload use the new one.

    Clients are asked for certificates by `client_auth`, of authorities in `client_ca_file`.
    """

    certificate_file: Path
    key_file: Path
    client_auth: ClientAuth = "none"
    client_ca_file: Path | None = None
    context: ssl.SSLContext = field(init=False)
    _seen: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        self.context.verify_mode = _VERIFY[self.client_auth]
        try:
            self._seen = self._modified()
            self._load()
        except (OSError, ssl.SSLError) as exc:
            raise ManifestError([self._problem(exc)]) from exc

    def pem_files(self) -> ServerTls:
        """Return the files as they are, for a server that cannot take a context."""
        client_ca = None
        if self.client_auth == "required" and self.client_ca_file is not None:
            client_ca = self.client_ca_file.read_bytes()
        return ServerTls(self.certificate_file.read_bytes(), self.key_file.read_bytes(), client_ca)

    def reload_if_changed(self) -> bool:
        """Reload the files if they changed; if loading fails, log it and keep the old pair."""
        try:
            modified = self._modified()
            if modified == self._seen:
                return False
            # Load into a new context first, so that a bad pair does not leave this one half loaded.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                self.certificate_file, self.key_file
            )
            self._load()
        except (OSError, ssl.SSLError) as exc:
            logger.warning("certificate not reloaded", extra={"reason": str(self._problem(exc))})
            return False
        self._seen = modified
        logger.info("certificate reloaded", extra={"file": str(self.certificate_file)})
        return True

    def _load(self) -> None:
        self.context.load_cert_chain(self.certificate_file, self.key_file)
        if self.client_auth != "none" and self.client_ca_file is not None:
            self.context.load_verify_locations(self.client_ca_file)

    def _modified(self) -> tuple[float, float]:
        return self.certificate_file.stat().st_mtime, self.key_file.stat().st_mtime

    def _problem(self, exc: Exception) -> Problem:
        return Problem(
            str(self.certificate_file),
            0,
            "runtime.tls",
            f"cannot load certificate '{self.certificate_file}' with key '{self.key_file}': {exc}; "
            "both must be PEM files that belong together",
        )
