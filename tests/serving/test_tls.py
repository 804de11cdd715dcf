"""Certificates of clients over TLS."""

import socket
import ssl
import threading
from pathlib import Path

import pytest

from caraway_serving.tls import Certificate, ClientAuth
from tests.kit.certificates import make_certificate


def handshake(certificate: Certificate, own: tuple[Path, Path] | None) -> bytes:
    """Connect as a client; return what the server sends."""
    context = ssl.create_default_context(cafile=str(certificate.certificate_file))
    if own is not None:
        context.load_cert_chain(*own)
    near, far = socket.socketpair()

    def serve() -> None:
        with near:
            try:
                with certificate.context.wrap_socket(near, server_side=True) as secure:
                    secure.sendall(b"hello")
            except OSError:
                return

    server = threading.Thread(target=serve)
    server.start()
    try:
        with far, context.wrap_socket(far, server_hostname="127.0.0.1") as secure:
            return secure.recv(5)
    except OSError:
        return b""
    finally:
        server.join(10)


@pytest.mark.parametrize(
    ("mode", "nothing", "ours", "theirs"),
    [
        ("none", b"hello", b"hello", b"hello"),
        ("request", b"hello", b"hello", b""),
        ("required", b"", b"hello", b""),
    ],
)
def test_certificates_of_clients(
    mode: ClientAuth, nothing: bytes, ours: bytes, theirs: bytes, tmp_path: Path
) -> None:
    pairs = {}
    for name in ("server", "ours", "theirs"):
        pairs[name] = tmp_path / f"{name}.crt", tmp_path / f"{name}.key"
        make_certificate(*pairs[name], is_authority=True)
    certificate = Certificate(*pairs["server"], mode, pairs["ours"][0])
    assert handshake(certificate, None) == nothing
    assert handshake(certificate, pairs["ours"]) == ours
    assert handshake(certificate, pairs["theirs"]) == theirs
    assert bool(certificate.pem_files().client_ca) == (mode == "required")
