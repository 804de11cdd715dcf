import datetime
import ipaddress
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from caraway import explanations
from caraway.client import Client
from caraway.errors import UnreachableError
from tests.client.runtime import Answer, FakeRuntime, running

DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "caraway test")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path_factory.mktemp("tls") / "server.pem"
    pem.write_bytes(
        signed.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return pem


@pytest.fixture
def secured(certificate: Path) -> Iterator[FakeRuntime]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with running(context) as runtime:
        yield runtime


def test_a_private_authority_is_trusted_when_it_is_given(
    secured: FakeRuntime, certificate: Path
) -> None:
    secured.answers("GET /v1/ready", Answer(body=b"ready"))

    with Client(secured.endpoint, cacert=certificate) as client:
        assert client.is_ready()


def test_an_unknown_authority_is_explained(secured: FakeRuntime) -> None:
    with (
        Client(secured.endpoint, max_retries=0) as client,
        pytest.raises(UnreachableError) as caught,
    ):
        client.datasets()

    assert explanations.explain(caught.value).startswith(
        f"cannot trust {secured.endpoint}: pass the authority that signed its certificate"
    )
