"""Packages of folders on this machine; links are not followed."""

import os
from pathlib import Path

import pytest

from caraway_core.errors import InvalidRequestError
from caraway_core.packages import folders
from caraway_core.packages.folders import FolderFiles

MANIFEST = "kind: Spicepod\nname: app\nviews: [{name: v, sql_ref: v.sql}]\n"


async def test_a_folder_is_a_package(tmp_path: Path) -> None:
    (tmp_path / "caraway.yaml").write_text(MANIFEST)
    (tmp_path / "v.sql").write_text("select 1")
    package = await folders.of_folder(tmp_path, "file:///none", None)
    assert sorted(package.files) == ["caraway.yaml", "v.sql"]
    assert await folders.of_folder(tmp_path / "caraway.yaml", "file:///none", None) == package


async def test_a_folder_without_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds none of caraway\.yaml"):
        await folders.of_folder(tmp_path, "file:///none", None)


async def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("hunter2")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "linked").symlink_to(outside)
    (folder / "v.sql").symlink_to(outside / "secret")
    (folder / "caraway.yaml").write_text(MANIFEST)
    files = FolderFiles(folder)
    for path in ("v.sql", "linked/secret", "../outside/secret"):
        with pytest.raises(ValueError, match="is a symbolic link, which is not followed"):
            await files.read(path, 1000)
    with pytest.raises(InvalidRequestError, match=r"'v\.sql' is a symbolic link") as caught:
        await folders.of_folder(folder, "file:///none", None)
    assert "hunter2" not in caught.value.message


async def test_what_is_no_file_is_absent(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    files = FolderFiles(tmp_path)
    for path in ("none", "folder", "pipe"):
        assert await files.read(path, 10) is None


async def test_a_file_has_at_most_the_bytes_that_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    files = FolderFiles(tmp_path)
    assert await files.read("a", 5) == b"12345"
    with pytest.raises(ValueError, match="has more than 4 bytes"):
        await files.read("a", 4)
