"""The keys of SSH: those that a server may have, and the private key of a user.

Keys of servers are those of the manifest, or of a file of OpenSSH.
"""

import base64
import hashlib
import io
import re
from collections.abc import Sequence

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.params import Params

_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_OPENSSH = "OPENSSH PRIVATE KEY"


class UnknownHostKeyError(paramiko.SSHException):
    """The server has a key that is not among the expected ones."""

    def __init__(self, fingerprint: str) -> None:
        super().__init__(fingerprint)
        self.fingerprint = fingerprint


class _Expected(paramiko.MissingHostKeyPolicy):
    """Accepts keys with one of these fingerprints."""

    def __init__(self, fingerprints: Sequence[str]) -> None:
        self._fingerprints = fingerprints

    def missing_host_key(
        self, _client: paramiko.SSHClient, _hostname: str, key: paramiko.PKey
    ) -> None:
        if (fingerprint := _fingerprint(key.asbytes())) not in self._fingerprints:
            raise UnknownHostKeyError(fingerprint)


def prepare(ssh: paramiko.SSHClient, request: SourceRequest, params: Params, title: str) -> None:
    """Make a client accept the expected host keys only.

    Raises:
        DatasetError: the params are no keys, or the file cannot be read.
    """
    texts = re.split(r"[,\n]", params.text("sftp_host_key") or "")
    keys = [_expected(each.strip(), title) for each in texts if each.strip()]
    ssh.set_missing_host_key_policy(_Expected(keys))
    if file := params.text("sftp_known_hosts"):
        try:
            ssh.load_host_keys(str(request.base_dir / file))
        except (OSError, ValueError, paramiko.SSHException) as exc:
            raise DatasetError(
                "invalid",
                f"dataset '{request.name}': the file of params.sftp_known_hosts cannot be read",
            ) from exc
    elif not keys:
        ssh.load_system_host_keys()


def refusal(title: str, exc: Exception) -> str:
    """Return the message for a server whose key is not expected."""
    key = exc.key.asbytes() if isinstance(exc, paramiko.BadHostKeyException) else None
    fingerprint = _fingerprint(key) if key is not None else str(exc)
    return (
        f"'{title}': the host key of the server is {fingerprint}, which is not expected; if it is "
        "the right one, set params.sftp_host_key to it, or add it to params.sftp_known_hosts"
    )


def _expected(text: str, title: str) -> str:
    if _FINGERPRINT.fullmatch(text):
        return text
    words = text.split()
    if len(words) >= 2 and not words[0].startswith("SHA256:"):
        try:
            return _fingerprint(base64.b64decode(words[1], validate=True))
        except ValueError:
            pass
    raise DatasetError(
        "invalid",
        f"'{title}': params.sftp_host_key must be 'SHA256:' and a fingerprint, or a public key "
        "such as 'ssh-ed25519 AAAA...'",
    )


def _fingerprint(key: bytes) -> str:
    digest = base64.b64encode(hashlib.sha256(key).digest()).decode()
    return f"SHA256:{digest.rstrip('=')}"


def private_key(request: SourceRequest, params: Params) -> paramiko.PKey | None:
    """Return the key of the params, if there is one.

    Raises:
        DatasetError: it is not a key, its kind is unknown, or the passphrase does not open it.
    """
    text = params.text("sftp_private_key")
    if text is None:
        return None
    passphrase = (params.text("sftp_private_key_passphrase") or "").encode() or None
    load = (
        serialization.load_ssh_private_key
        if _OPENSSH in text
        else serialization.load_pem_private_key
    )
    try:
        match load(text.strip().encode() + b"\n", passphrase):
            case Ed25519PrivateKey() as key:
                return paramiko.Ed25519Key.from_private_key(io.StringIO(_written(key)))
            case EllipticCurvePrivateKey() as key:
                return paramiko.ECDSAKey(vals=(key, key.public_key()))
            case RSAPrivateKey() as key:
                return paramiko.RSAKey(key=key)
    except (ValueError, TypeError, UnsupportedAlgorithm, paramiko.SSHException):
        pass  # The error below says all of these, and none of the key.
    raise DatasetError(
        "invalid",
        f"dataset '{request.name}': params.sftp_private_key is not a private key of OpenSSH or "
        "PEM, or params.sftp_private_key_passphrase does not open it; its kind must be Ed25519, "
        "ECDSA or RSA",
    )


def _written(key: Ed25519PrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    ).decode()
