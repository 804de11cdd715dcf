import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from caraway.client import Client
from caraway.errors import UnreachableError
from caraway.terminal import explanations
from tests.client.runtime import Answer, FakeRuntime, running
from tests.kit.certificates import make_certificate


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key in the same file."""
    folder = tmp_path_factory.mktemp("tls")
    make_certificate(folder / "server.crt", folder / "server.key", is_authority=True)
    pem = folder / "server.pem"
    pem.write_bytes((folder / "server.crt").read_bytes() + (folder / "server.key").read_bytes())
    return pem


@pytest.fixture
def secured(certificate: Path) -> Iterator[FakeRuntime]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with running(context) as runtime:
        yield runtime


def test_a_private_ca_is_trusted_if_given(secured: FakeRuntime, certificate: Path) -> None:
    secured.answers("GET /v1/ready", Answer(body=b"ready"))

    with Client(http_url=secured.endpoint, tls_root_cert=certificate) as client:
        assert client.is_service_ready()


def test_an_unknown_ca_gets_a_hint(secured: FakeRuntime) -> None:
    with (
        Client(http_url=secured.endpoint, max_retries=0) as client,
        pytest.raises(UnreachableError) as caught,
    ):
        client.datasets()

    assert explanations.explain(caught.value).startswith(
        f"cannot verify the certificate of {secured.endpoint}: pass the certificate of its CA"
    )
