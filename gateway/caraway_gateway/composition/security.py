"""Access of clients: the certificate, the API keys and the origins of the manifest."""

import os
from pathlib import Path

from caraway_core import manifest as manifests
from caraway_core.errors import ManifestError, Problem
from caraway_core.manifest import Manifest, SecretResolver
from caraway_serving.access import Keyring
from caraway_serving.tls import Certificate


def certificate(
    settings: manifests.RuntimeSettings, secrets: SecretResolver, folder: Path
) -> Certificate | None:
    """Load the certificate that the manifest names, if it names one.

    PEM texts are written to `folder`, since the TLS library reads files only.
    """
    tls = settings.tls
    if tls is None:
        return None
    return Certificate(
        tls.certificate_file
        or _pem_file(folder / "tls.crt", secrets.expand(tls.certificate or "")),
        tls.key_file or _pem_file(folder / "tls.key", secrets.expand(tls.key or "")),
        tls.client_auth_mode,
        tls.client_auth_ca_file,
    )


def _pem_file(path: Path, text: str) -> Path:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    return path


def cors_origins(settings: manifests.RuntimeSettings) -> list[str] | None:
    """Return the origins that browsers may send requests from; None disables CORS."""
    return list(settings.cors.allowed_origins) if settings.cors.enabled else None


def keyring(manifest: Manifest, secrets: SecretResolver) -> Keyring | None:
    """Return the API keys, with secrets filled in; None where the API needs no key.

    Raises:
        ManifestError: keys are required and every one of them is empty.
    """
    return Keyring(keys(manifest, secrets)) if manifest.runtime.auth.enabled else None


def keys(manifest: Manifest, secrets: SecretResolver) -> list[tuple[str, str]]:
    """Return the API keys with their rights.

    Raises:
        CarawayError: every one of them is empty, or a secret cannot be read.
    """
    found = [manifests.split_key(secrets.expand(key)) for key in manifest.runtime.auth.keys]
    if not any(key for key, _ in found):
        raise ManifestError(
            [
                Problem(
                    str(manifest.path), 0, "runtime.auth.api-key.keys",
                    "every key is empty; set the secrets that they refer to",
                )
            ]
        )  # fmt: skip
    return [*found]
