"""Files of SFTP servers, whose host keys are verified."""

from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest

from caraway_core.errors import DatasetError
from tests.kit import file_servers
from tests.kit.file_servers import ServedFolder
from tests.plugins.sources.reading import Dataset

OTHER = asyncssh.generate_private_key("ssh-ed25519")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedFolder]:
    (tmp_path / "files").mkdir()
    with file_servers.sftp(tmp_path / "files") as server:
        yield server


def dataset(served: ServedFolder, path: str, /, **params: str) -> Dataset:
    given = {**served.sftp_login, **params}
    return Dataset("sftp", f"{served.address}/{path}", served.folder.parent, given)


def test_files_below_a_folder_are_rows_with_their_partitions(served: ServedFolder) -> None:
    for day, row in (("2024-01-01", "1"), ("2024-01-02", "2")):
        (served.folder / "data" / f"day={day}").mkdir(parents=True)
        (served.folder / "data" / f"day={day}" / "a.csv").write_text(f"id\n{row}\n")
    (served.folder / "data" / "nowhere.csv").symlink_to("none.csv")
    sql = "SELECT id, CAST(day AS VARCHAR) AS day FROM t ORDER BY 1"
    rows = [{"id": 1, "day": "2024-01-01"}, {"id": 2, "day": "2024-01-02"}]
    assert dataset(served, "data/").rows(sql) == rows
    assert dataset(served, "data/**/*.csv").rows(sql) == rows
    assert dataset(served, "~/data/").rows(sql) == rows


def test_other_files_have_another_fingerprint(served: ServedFolder) -> None:
    (served.folder / "a.csv").write_text("id\n1\n")
    files = dataset(served, "")
    before = files.fingerprint()
    assert files.fingerprint() == before
    (served.folder / "b.csv").write_text("id\n2\n")
    assert files.fingerprint() != before
    assert files.rows() == [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize("form", ["fingerprint", "key", "known_hosts"])
def test_host_keys_may_be_in_several_forms(served: ServedFolder, form: str) -> None:
    (served.folder / "a.csv").write_text("id\n1\n")
    key = served.host_key.export_public_key().decode().strip()
    (served.folder.parent / "known").write_text(f"[127.0.0.1]:{served.port} {key}\n")
    params = {
        "fingerprint": {"sftp_host_key": f"{OTHER.get_fingerprint()}, {served.fingerprint}"},
        "key": {"sftp_host_key": key},
        "known_hosts": {"sftp_host_key": "", "sftp_known_hosts": "known"},
    }[form]
    assert dataset(served, "a.csv", **params).rows() == [{"id": 1}]


@pytest.mark.parametrize("form", ["fingerprint", "key", "known_hosts", "nothing"])
def test_servers_with_another_host_key_get_no_password(
    served: ServedFolder, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("HOME", str(served.folder))
    key = OTHER.export_public_key().decode().strip()
    (served.folder.parent / "known").write_text(f"[127.0.0.1]:{served.port} {key}\n")
    params = {
        "fingerprint": {"sftp_host_key": OTHER.get_fingerprint()},
        "key": {"sftp_host_key": key},
        "known_hosts": {"sftp_host_key": "", "sftp_known_hosts": "known"},
        "nothing": {"sftp_host_key": ""},
    }[form]
    with pytest.raises(DatasetError, match="is not expected") as caught:
        dataset(served, "a.csv", **params).resolve()
    assert caught.value.type == "auth"
    # The message shows the key, so that an operator who knows it can copy it.
    assert served.fingerprint in str(caught.value)
    assert served.logins == []


@pytest.mark.parametrize("kind", ["ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa"])
def test_private_keys_take_the_place_of_passwords(tmp_path: Path, kind: str) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.csv").write_text("id\n1\n")
    key = asyncssh.generate_private_key(kind)
    locked = key.export_private_key(passphrase="open sesame", rounds=50).decode()
    with file_servers.sftp(tmp_path / "files", user_key=key) as served:

        def with_key(text: str, **params: str) -> Dataset:
            return dataset(served, "a.csv", sftp_pass="", sftp_private_key=text, **params)

        for form in ("openssh", "pkcs8-pem"):
            plain = key.export_private_key(form).decode()
            assert with_key(plain).rows() == [{"id": 1}]
        passphrase = {"sftp_private_key_passphrase": "open sesame"}
        assert with_key(locked, **passphrase).rows() == [{"id": 1}]
        with pytest.raises(DatasetError, match="does not open it") as caught:
            with_key(locked).resolve()
        assert caught.value.type == "invalid"
        with pytest.raises(DatasetError, match="the login is refused") as caught:
            with_key(OTHER.export_private_key().decode()).resolve()
        assert caught.value.type == "auth"


@pytest.mark.parametrize(("params", "type_", "message"), [
    ({"sftp_pass": "wrong"}, "auth", "the login is refused"),
    ({"sftp_user": "nobody"}, "auth", "the login is refused"),
    ({"sftp_host": "x"}, "invalid", "sftp_host"),
    ({"sftp_host_key": "SHA256:short"}, "invalid", "sftp_host_key must be"),
    ({"sftp_host_key": "ssh-ed25519 ?"}, "invalid", "sftp_host_key must be"),
    ({"sftp_known_hosts": "none"}, "invalid", "sftp_known_hosts cannot be read"),
    ({"sftp_private_key": "secret text"}, "invalid", "not a private key"),
])  # fmt: skip
def test_wrong_params_are_refused_without_secrets(
    served: ServedFolder, params: dict[str, str], type_: str, message: str
) -> None:
    (served.folder / "a.csv").write_text("id\n1\n")
    with pytest.raises(DatasetError, match=message) as caught:
        dataset(served, "a.csv", **params).resolve()
    assert caught.value.type == type_
    assert file_servers.PASSWORD not in str(caught.value)
    assert "secret text" not in str(caught.value)


@pytest.mark.parametrize("path", ["../secret.csv", "a/../../secret.csv", "~/../x", "x\0.csv"])
def test_paths_that_leave_their_folder_are_refused(served: ServedFolder, path: str) -> None:
    with pytest.raises(DatasetError) as caught:
        dataset(served, path).resolve()
    assert caught.value.type == "invalid"


def test_names_of_a_server_lead_to_no_other_place(
    served: ServedFolder,
) -> None:
    (served.folder / "a.csv").write_text("id\n1\n")
    served.also_lists = ["../../outside.csv", "..", "/etc/x.csv"]
    files = dataset(served, "")
    assert files.rows() == [{"id": 1}]
    copies = served.folder.parent / ".cache"
    assert [each.name[33:] for each in copies.rglob("*.csv")] == ["a.csv"]


def test_links_in_a_circle_end(served: ServedFolder) -> None:
    (served.folder / "data").mkdir()
    (served.folder / "data" / "a.csv").write_text("id\n1\n")
    (served.folder / "data" / "again").symlink_to(served.folder / "data")
    assert dataset(served, "data/").rows() == [{"id": 1}]


def test_files_that_the_user_cannot_read_are_an_error(served: ServedFolder) -> None:
    (served.folder / "a.csv").write_text("id\n1\n")
    served.is_denied = True
    with pytest.raises(DatasetError, match="check its permissions") as caught:
        dataset(served, "a.csv").resolve()
    assert caught.value.type == "auth"
