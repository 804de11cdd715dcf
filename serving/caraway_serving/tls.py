"""TLS from PEM files, reloaded when they change."""

import logging
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from caraway_core.errors import ManifestError, Problem

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Certificate:
    """A server certificate; connections opened after a reload use the new one."""

    certificate_file: Path
    key_file: Path
    context: ssl.SSLContext = field(init=False)
    _seen: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        try:
            self._seen = self._modified()
            self._load()
        except (OSError, ssl.SSLError) as exc:
            raise ManifestError([self._problem(exc)]) from exc

    def pem_files(self) -> tuple[bytes, bytes]:
        """Return the current certificate and key, for a server that cannot use a context."""
        return self.certificate_file.read_bytes(), self.key_file.read_bytes()

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
