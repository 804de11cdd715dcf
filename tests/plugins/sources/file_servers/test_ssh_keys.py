"""Keys of SSH servers that are expected, and private keys of users."""

import base64
import hashlib
from pathlib import Path

import paramiko
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.file_servers import ssh_keys
from caraway_plugins.sources.file_servers.ssh_keys import UnknownHostKeyError
from caraway_plugins.sources.params import Params

ED25519 = ed25519.Ed25519PrivateKey.generate()
Key = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
KEYS: dict[str, Key] = {
    "ed25519": ED25519,
    "ecdsa": ec.generate_private_key(ec.SECP256R1()),
    "rsa": rsa.generate_private_key(65_537, 2_048),
}
PUBLIC = ED25519.public_key().public_bytes(
    serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
)
BYTES = base64.b64decode(PUBLIC.split()[1])
FINGERPRINT = "SHA256:" + base64.b64encode(hashlib.sha256(BYTES).digest()).decode().rstrip("=")


def request() -> SourceRequest:
    return SourceRequest(TableName("sales"), "sftp", "h/a", {}, (), "read", Path("/"), Path("/"))


def written(name: str, form: str, passphrase: bytes | None = None) -> str:
    formats = {
        "openssh": serialization.PrivateFormat.OpenSSH,
        "pkcs8": serialization.PrivateFormat.PKCS8,
    }
    lock: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase:
        lock = serialization.BestAvailableEncryption(passphrase)
    made = KEYS[name].private_bytes(serialization.Encoding.PEM, formats[form], lock)
    return made.decode()


def prepared(**params: str) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    ssh_keys.prepare(client, request(), Params(params), "sftp://h")
    return client


@pytest.mark.parametrize(
    "text",
    [FINGERPRINT, PUBLIC.decode(), f"{PUBLIC.decode()} a comment", f"  {FINGERPRINT} , ",
     f"SHA256:{'A' * 43},{FINGERPRINT}", f"SHA256:{'A' * 43}\n{PUBLIC.decode()}"],
    ids=["fingerprint", "key", "comment", "spaces", "fingerprints", "lines"],
)  # fmt: skip
def test_expected_keys_are_accepted_and_others_are_not(text: str) -> None:
    policy = prepared(sftp_host_key=text)._policy  # type: ignore[attr-defined] # what connect asks
    policy.missing_host_key(paramiko.SSHClient(), "h", paramiko.Ed25519Key(data=BYTES))
    other = paramiko.RSAKey.generate(1_024)
    with pytest.raises(UnknownHostKeyError) as caught:
        policy.missing_host_key(paramiko.SSHClient(), "h", other)
    assert caught.value.fingerprint.startswith("SHA256:")
    assert caught.value.fingerprint in ssh_keys.refusal("sftp://h", caught.value)


@pytest.mark.parametrize(
    "text", ["x", "SHA256:short", "MD5:aa:bb", "ssh-ed25519 ÄÄ", "ssh-ed25519 A", "h ssh-ed25519 x"]
)
def test_texts_that_are_no_key_of_a_server(text: str) -> None:
    with pytest.raises(DatasetError, match="must be 'SHA256:' and a fingerprint"):
        prepared(sftp_host_key=text)


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_files_of_known_hosts_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "known_hosts"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DatasetError, match=r"the file of params\.sftp_known_hosts cannot be read"):
        prepared(sftp_known_hosts=str(file))


@pytest.mark.parametrize("form", ["openssh", "pkcs8"])
@pytest.mark.parametrize("name", list(KEYS))
@pytest.mark.parametrize("passphrase", ["", "hunter2"])
def test_private_keys(name: str, form: str, passphrase: str) -> None:
    text = written(name, form, passphrase.encode() or None)
    params = {"sftp_private_key": f"\n{text}\n", "sftp_private_key_passphrase": passphrase}
    found = ssh_keys.private_key(request(), Params(params))
    assert found is not None
    public = (
        KEYS[name]
        .public_key()
        .public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    )
    assert found.get_base64() == public.split()[1].decode()


def test_without_a_key_there_is_none() -> None:
    assert ssh_keys.private_key(request(), Params({})) is None


@pytest.mark.parametrize(
    ("text", "passphrase"),
    [
        ("hunter2", ""),
        (PUBLIC.decode(), ""),
        (written("rsa", "openssh", b"hunter2"), ""),
        (written("rsa", "openssh", b"hunter2"), "hunter3"),
        (written("rsa", "pkcs8", b"hunter2"), "hunter3"),
        (written("rsa", "pkcs8"), "hunter3"),
        (written("rsa", "openssh")[:200], ""),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nÄ\n-----END OPENSSH PRIVATE KEY-----", ""),
        (dsa.generate_private_key(1_024).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption()).decode(), ""),
    ],
    ids=range(9),
)  # fmt: skip
def test_texts_that_are_no_private_key_are_not_shown(text: str, passphrase: str) -> None:
    params = {"sftp_private_key": text, "sftp_private_key_passphrase": passphrase}
    with pytest.raises(
        DatasetError, match=r"params\.sftp_private_key is not a private key"
    ) as caught:
        ssh_keys.private_key(request(), Params(params))
    assert "hunter" not in caught.value.message
    assert caught.value.__cause__ is None
