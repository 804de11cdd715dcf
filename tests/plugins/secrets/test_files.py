"""Secrets that are files of a folder."""

from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_plugins.secrets.files import Files


def test_files_are_read_at_each_access(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n\n")
    store = Files({"path": str(tmp_path)}, Path("/"), {})
    assert store.get("token") == "one\n"
    (tmp_path / "token").write_text("two\r\n")
    assert store.get("token") == "two"
    assert store.get("absent") is None


def test_files_follow_links_as_kubernetes_makes_them(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "token").write_text("linked")
    (tmp_path / "token").symlink_to("..data/token")
    assert Files({"path": f"//{tmp_path}"}, Path("/"), {}).get("token") == "linked"


def test_a_name_that_no_file_can_have_is_told(tmp_path: Path) -> None:
    store = Files({"path": "."}, tmp_path, {})
    with pytest.raises(CarawayError, match="cannot be read: File name too long") as caught:
        store.get("a" * 5_000)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("name", ["", ".", "..", "../a", "a/b", "a\\b", "/etc/passwd", "a\0"])
def test_names_outside_the_folder_are_rejected(tmp_path: Path, name: str) -> None:
    store = Files({"path": "."}, tmp_path, {})
    with pytest.raises(CarawayError, match="is not a valid secret name"):
        store.get(name)


def test_folder_must_be_given_and_exist(tmp_path: Path) -> None:
    with pytest.raises(CarawayError, match="needs a folder"):
        Files({}, tmp_path, {})
    with pytest.raises(CarawayError, match=r"the folder '.*absent' does not exist"):
        Files({"path": "absent"}, tmp_path, {})


def test_unreadable_secrets_are_told_without_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"hunter2\xff")
    (tmp_path / "large").write_bytes(b"x" * (1024 * 1024 + 1))
    store = Files({"path": "."}, tmp_path, {})
    with pytest.raises(CarawayError, match="it is not UTF-8 text") as caught:
        store.get("binary")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(CarawayError, match="is larger than 1 MiB"):
        store.get("large")
