"""What is the same of files of FTP and of SFTP servers: their names, and their columns."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from caraway_core.errors import DatasetError
from tests.kit import file_servers
from tests.kit.file_servers import ServedFolder
from tests.plugins.sources.reading import Dataset


@dataclass(frozen=True, slots=True)
class Server:
    """A server, and the connector that reads it."""

    connector: str
    served: ServedFolder

    def dataset(self, path: str, /, **params: str) -> Dataset:
        served = self.served
        login = served.ftp_login if self.connector == "ftp" else served.sftp_login
        address, folder = f"{served.address}/{path}", served.folder.parent
        return Dataset(self.connector, address, folder, {**login, **params})


@pytest.fixture(params=["ftp", "sftp"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "files").mkdir()
    serving = file_servers.ftp if request.param == "ftp" else file_servers.sftp
    with serving(tmp_path / "files") as served:
        yield Server(request.param, served)


@pytest.mark.parametrize("name", ["two words.csv", "größe.csv", "a%20b.csv", "x'y.csv", "-a.csv"])
@pytest.mark.parametrize("is_folder", [True, False])
def test_names_are_taken_as_they_are(server: Server, name: str, is_folder: bool) -> None:
    folder = server.served.folder / "ein ordner é"
    folder.mkdir()
    (folder / name).write_text("id\n1\n")
    path = "ein ordner é/" + ("" if is_folder else name)
    assert server.dataset(path).rows() == [{"id": 1}]


def test_columns_about_files_have_the_address_at_the_server(server: Server) -> None:
    file = server.served.folder / "a.csv"
    file.write_text("id\n1\n")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    sql = "SELECT _location, CAST(_last_modified AS VARCHAR) AS at, _size FROM t"
    assert server.dataset("a.csv", metadata_columns="true").rows(sql) == [
        {
            "_location": f"{server.connector}:{server.served.address}/a.csv",
            "at": "2023-11-14T22:13:20Z",
            "_size": 5,
        }
    ]


@pytest.mark.parametrize("path", ["none.csv", "none/", "none/*.csv"])
def test_what_is_not_there_is_not_found(server: Server, path: str) -> None:
    with pytest.raises(DatasetError) as caught:
        server.dataset(path).resolve()
    assert caught.value.type == "not_found"


@pytest.mark.parametrize(("bound", "value"), [("ends_after", 100_000), ("cuts_after", 100_001)])
def test_a_file_that_ends_early_leaves_no_copy(server: Server, bound: str, value: int) -> None:
    served = server.served
    (served.folder / "a.csv").write_text("id\n" + "1\n" * 100_000)
    setattr(served, bound, value)
    with pytest.raises(DatasetError, match=r"cannot be read|it changed while") as caught:
        server.dataset("a.csv").resolve()
    assert caught.value.type == "unavailable"
    assert list((served.folder.parent / ".cache").rglob("*.csv")) == []
    setattr(served, bound, None)
    assert server.dataset("a.csv").rows("SELECT count(*) AS n FROM t") == [{"n": 100_000}]


@pytest.mark.parametrize("connector", ["ftp", "sftp"])
def test_a_server_that_is_away_or_silent_is_unavailable(tmp_path: Path, connector: str) -> None:
    with file_servers.silent() as port:
        slow = Dataset(
            connector, f"//127.0.0.1:{port}/a.csv", tmp_path, {"client_timeout": "200ms"}
        )
        with pytest.raises(DatasetError, match="cannot be read") as caught:
            slow.resolve()
        assert caught.value.type == "unavailable"
    with pytest.raises(DatasetError, match="cannot be read") as caught:
        slow.resolve()
    assert caught.value.type == "unavailable"
