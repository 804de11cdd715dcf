"""Private keys of users of SFTP servers, as clients of SSH need them."""

import io

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.params import Params

_OPENSSH = "OPENSSH PRIVATE KEY"


def read(request: SourceRequest, params: Params) -> paramiko.PKey | None:
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
