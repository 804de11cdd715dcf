"""Files of FTP servers: plain, with TLS, and without the commands of newer servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from caraway_core.errors import DatasetError
from tests.kit import file_servers
from tests.kit.certificates import make_certificate
from tests.kit.file_servers import ServedFolder
from tests.plugins.sources.reading import Dataset


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedFolder]:
    (tmp_path / "files").mkdir()
    with file_servers.ftp(tmp_path / "files") as server:
        yield server


def dataset(served: ServedFolder, path: str, /, **params: str) -> Dataset:
    given = {**served.ftp_login, **params}
    return Dataset("ftp", f"{served.address}/{path}", served.folder.parent, given)


@pytest.mark.parametrize("has_facts", [True, False])
def test_files_below_a_folder_are_rows_with_their_partitions(
    tmp_path: Path, has_facts: bool
) -> None:
    folder = tmp_path / "files"
    for day, row in (("2024-01-01", "1"), ("2024-01-02", "2")):
        (folder / "data" / f"day={day}").mkdir(parents=True)
        (folder / "data" / f"day={day}" / "a.csv").write_text(f"id\n{row}\n")
    (folder / "data" / "empty").mkdir()
    (folder / "data" / "README.md").write_text("about")
    with file_servers.ftp(folder, has_facts=has_facts) as served:
        rows = dataset(served, "data/").rows("SELECT id, CAST(day AS VARCHAR) AS day FROM t")
        assert any("MLSD" in each for each in served.commands) == has_facts
        assert not any(each.startswith("PORT") for each in served.commands)
    assert sorted(map(str, rows)) == [
        "{'id': 1, 'day': '2024-01-01'}",
        "{'id': 2, 'day': '2024-01-02'}",
    ]


def test_a_pattern_reads_only_its_files(served: ServedFolder) -> None:
    for name in ("a.csv", "b.csv", "c.json"):
        (served.folder / name).write_text("id\n1\n" if name != "c.json" else '{"id": 9}\n')
    assert dataset(served, "*.csv").rows() == [{"id": 1}, {"id": 1}]
    downloads = [each for each in served.commands if each.startswith("RETR")]
    assert sorted(downloads) == ["RETR /a.csv", "RETR /b.csv"]


def test_only_changed_files_are_downloaded_again(served: ServedFolder) -> None:
    (served.folder / "a.csv").write_text("id\n1\n")
    (served.folder / "b.csv").write_text("id\n2\n")
    files = dataset(served, "")
    first, before = files.resolve(), files.fingerprint()
    assert files.fingerprint() == before
    (served.folder / "b.csv").write_text("id\n30\n")
    served.commands.clear()
    assert files.fingerprint() != before
    assert files.rows() == [{"id": 1}, {"id": 30}]
    assert [each for each in served.commands if each.startswith("RETR")] == ["RETR /b.csv"]
    # A statement that began before still reads its files.
    assert [path for scan in first.scans for path in scan.paths if not Path(path).is_file()] == []
    files.resolve()
    assert len(list((served.folder.parent / ".cache" / "ftp").rglob("*-b.csv"))) == 1


def test_encrypted_connections_trust_the_certificate_of_the_params(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.csv").write_text("id\n1\n")
    pair = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_certificate(*pair)
    with file_servers.ftp(tmp_path / "files", certificate=pair) as served:
        trusted = dataset(served, "a.csv", ftp_tls="true", ftp_tls_root_certs="cert.pem")
        assert trusted.rows() == [{"id": 1}]
        with pytest.raises(DatasetError, match="certificate of the server") as caught:
            dataset(served, "a.csv", ftp_tls="true").resolve()
        assert caught.value.type == "unavailable"
        with pytest.raises(DatasetError):  # The server refuses logins without TLS.
            dataset(served, "a.csv").resolve()
        with pytest.raises(DatasetError, match="holds no certificates"):
            dataset(served, "a.csv", ftp_tls="true", ftp_tls_root_certs="none.pem").resolve()


@pytest.mark.parametrize(("params", "type_", "message"), [
    ({"ftp_pass": "wrong"}, "auth", "check params.ftp_user and ftp_pass"),
    ({"ftp_user": "nobody"}, "auth", "check params.ftp_user and ftp_pass"),
    ({"ftp_host": "x"}, "invalid", "ftp_host"),
    ({"client_timeout": "soon"}, "invalid", "client_timeout"),
    ({"ftp_tls": "maybe"}, "invalid", "ftp_tls"),
])  # fmt: skip
def test_wrong_params_are_refused_without_secrets(
    served: ServedFolder, params: dict[str, str], type_: str, message: str
) -> None:
    (served.folder / "a.csv").write_text("id\n1\n")
    with pytest.raises(DatasetError, match=message) as caught:
        dataset(served, "a.csv", **params).resolve()
    assert caught.value.type == type_
    assert file_servers.PASSWORD not in str(caught.value)


@pytest.mark.parametrize("path", ["../secret.csv", "a/../../secret.csv", "a/..", "x\r\nDELE y.csv",
                                  "x\0.csv"])  # fmt: skip
def test_paths_that_leave_their_folder_or_line_are_refused(served: ServedFolder, path: str) -> None:
    with pytest.raises(DatasetError) as caught:
        dataset(served, path).resolve()
    assert caught.value.type == "invalid"
    assert served.commands == []


@pytest.mark.parametrize("address", ["", "//", "///a.csv", "//host:port/a.csv", "//[::1/a"])
def test_other_addresses_are_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(DatasetError, match="ftp://host/path"):
        Dataset("ftp", address, tmp_path, {}).resolve()


def test_a_password_in_the_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"params\.ftp_pass") as caught:
        Dataset("ftp", "//reader:hunter2@127.0.0.1/a.csv", tmp_path, {}).resolve()
    assert "hunter2" not in str(caught.value)


def test_a_file_that_ends_early_is_refused(served: ServedFolder) -> None:
    (served.folder / "a.csv").write_text("id\n" + "1\n" * 100_000)
    served.cuts_after = 100_001
    with pytest.raises(DatasetError, match="it changed while it was read") as caught:
        dataset(served, "a.csv").resolve()
    assert caught.value.type == "unavailable"


def test_links_in_a_circle_end(served: ServedFolder) -> None:
    (served.folder / "data" / "sub").mkdir(parents=True)
    (served.folder / "data" / "a.csv").write_text("id\n1\n")
    (served.folder / "data" / "sub" / "b.csv").write_text("id\n2\n")
    (served.folder / "data" / "again").symlink_to(served.folder / "data")
    (served.folder / "data" / "sub" / "again").symlink_to(served.folder / "data" / "sub")
    assert dataset(served, "data/").rows() == [{"id": 1}, {"id": 2}]
    # Older servers do not say which folders are the same.
    with file_servers.ftp(served.folder, has_facts=False) as older:
        with pytest.raises(DatasetError, match="lead in a circle"):
            dataset(older, "data/").resolve()


def test_names_that_are_not_utf_8_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "größe.csv").write_text("id\n1\n")
    with file_servers.ftp(tmp_path / "files", names_in="latin-1") as served:
        with pytest.raises(DatasetError, match="not UTF-8") as caught:
            dataset(served, "").resolve()
    assert caught.value.type == "invalid"


def test_documents_are_refused(served: ServedFolder) -> None:
    (served.folder / "a.txt").write_text("hello")
    with pytest.raises(DatasetError, match="copy it there"):
        dataset(served, "a.txt", file_format="txt").resolve()
