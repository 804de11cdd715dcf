"""Issues certificates: a CA for each cluster, and a server certificate for its schedulers.

Pure, apart from the random keys. Keys are on an elliptic curve, which is fast to generate and
supported by every client.
"""

import datetime as dt
import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_AUTHORITY_DAYS, _AUTHORITY_LEFT_DAYS = 3650, 365
_SERVER_DAYS, _SERVER_LEFT_DAYS = 365, 60
# For machines whose clock is slow.
_BEFORE = dt.timedelta(hours=1)
_LONGEST_COMMON_NAME = 64


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, as PEM."""

    certificate: str
    key: str = field(repr=False)


def names(cluster: str, namespace: str, more: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the DNS names of the Services that users connect to."""
    services = (cluster, f"{cluster}-public")
    within = [
        name
        for service in services
        for name in (
            service,
            f"{service}.{namespace}",
            f"{service}.{namespace}.svc",
            f"{service}.{namespace}.svc.cluster.local",
        )
    ]
    return tuple(dict.fromkeys([*within, "localhost", "127.0.0.1", *more]))


def authority(cluster: str, now: dt.datetime) -> KeyPair:
    """Create a CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"Caraway CA of {cluster}")
    certificate = (
        _builder(subject, subject, key, now, _AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def server(ca: KeyPair, cluster: str, shown: Sequence[str], now: dt.datetime) -> KeyPair:
    """Create a server certificate for these names, signed by the CA."""
    signer = _key(ca)
    issuer = x509.load_pem_x509_certificate(ca.certificate.encode())
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_subject(cluster), issuer.subject, key, now, _SERVER_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([_general(name) for name in shown]), critical=False
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
            critical=False,
        )
        .sign(signer, hashes.SHA256())
    )
    return _pair(certificate, key)


def is_authority_due(certificate: str, now: dt.datetime) -> bool:
    """Return whether a CA must be renewed: it expires soon or is malformed."""
    return _left(certificate, now) < dt.timedelta(days=_AUTHORITY_LEFT_DAYS)


def is_server_due(certificate: str, ca: str, shown: Sequence[str], now: dt.datetime) -> bool:
    """Return whether a certificate must be renewed: it expires soon, or CA or names differ."""
    if _left(certificate, now) < dt.timedelta(days=_SERVER_LEFT_DAYS):
        return True
    made = x509.load_pem_x509_certificate(certificate.encode())
    try:
        made.verify_directly_issued_by(x509.load_pem_x509_certificate(ca.encode()))
        subject_alternative_name = made.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return True
    return not {_general(name) for name in shown} <= set(subject_alternative_name)


def _left(certificate: str, now: dt.datetime) -> dt.timedelta:
    try:
        return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc - now
    except ValueError:
        return dt.timedelta(0)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: dt.datetime,
    days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + dt.timedelta(days=days))
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:_LONGEST_COMMON_NAME])])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key(pair: KeyPair) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pair.key.encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey), "the CA was created by this module"
    return key


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM).decode(), text.decode())
