"""Chunks in a directory: hostile names, damaged bytes, races and crashes."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from caraway_cluster.store.chunk_folder import (
    ChecksumMismatchError,
    ChunkFolder,
    checksum_of,
    folder_of,
)
from caraway_plugins.stores.durable import UnfinishedFiles

CONTENT = b"rows"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = f"00000000-{SHA256}.arrow"
KEY = Path("jobs/key")


@pytest.fixture
def chunks(tmp_path: Path) -> ChunkFolder:
    return ChunkFolder(tmp_path / "store")


def put(chunks: ChunkFolder, folder: Path = KEY, content: bytes = CONTENT) -> None:
    with chunks.new_draft() as draft:
        draft.write([content[:2], content[2:]])
        chunks.publish(draft, folder, NAME)


def unfinished(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "store" / ".unfinished").iterdir())


@pytest.mark.parametrize(
    "steps",
    [
        [], [""], ["."], [".."], ["a", ".."], ["a/b"], ["a\\..\\b", "/etc"], [".unfinished"],
        ["a\0"], ["a\n"], ["a" * 5000], ["a"] * 11, ["\u0661"], ["%2e%2e"], ["a b"],
    ],
)  # fmt: skip
def test_names_that_leave_the_directory_are_rejected(steps: list[str]) -> None:
    assert folder_of(steps) is None


def test_valid_steps_name_a_folder() -> None:
    assert folder_of(["id", "jobs", "key_1.x-y"]) == Path("id/jobs/key_1.x-y")


@pytest.mark.parametrize(
    "name",
    [
        "", f"{SHA256}.arrow", f"0-{SHA256}.arrow", f"00000000-{SHA256}", f"{NAME}\n",
        f"00000000-{SHA256.upper()}.arrow", f"00000000-{SHA256[:-1]}.arrow", f"../{NAME}",
        f"0000000\u0660-{SHA256}.arrow",
    ],
)  # fmt: skip
def test_names_that_are_not_of_a_chunk_have_no_checksum(name: str) -> None:
    assert checksum_of(name) is None


def test_a_published_chunk_is_read_back(chunks: ChunkFolder, tmp_path: Path) -> None:
    put(chunks)

    found = chunks.open_chunk(KEY, NAME)
    assert found is not None
    with found:
        assert found.read() == CONTENT
    assert unfinished(tmp_path) == []


def test_damaged_bytes_are_not_published(chunks: ChunkFolder, tmp_path: Path) -> None:
    with pytest.raises(ChecksumMismatchError, match="does not match"):
        put(chunks, content=b"rowz")

    assert chunks.open_chunk(KEY, NAME) is None
    assert chunks.list_keys(Path("jobs")) == []
    assert unfinished(tmp_path) == []


def test_a_draft_that_is_not_published_is_removed(chunks: ChunkFolder, tmp_path: Path) -> None:
    with pytest.raises(ConnectionError), chunks.new_draft() as draft:
        draft.write([CONTENT])
        assert len(unfinished(tmp_path)) == 1
        raise ConnectionError

    assert unfinished(tmp_path) == []


def test_a_chunk_stays_readable_while_it_is_deleted(chunks: ChunkFolder) -> None:
    put(chunks)
    found = chunks.open_chunk(KEY, NAME)
    assert found is not None

    chunks.delete_key(KEY)
    chunks.delete_key(KEY)

    with found:
        assert found.read() == CONTENT
    assert chunks.open_chunk(KEY, NAME) is None
    assert chunks.list_keys(Path("jobs")) == []


def test_only_folders_with_chunks_are_keys(chunks: ChunkFolder, tmp_path: Path) -> None:
    put(chunks, Path("jobs/b"))
    put(chunks, Path("jobs/a"))
    jobs = tmp_path / "store" / "jobs"
    (jobs / "empty").mkdir()
    (jobs / "file").write_bytes(CONTENT)
    (jobs / "foreign").mkdir()
    (jobs / "foreign" / "notes.txt").touch()
    (jobs / "not a key").mkdir()
    (jobs / "not a key" / NAME).touch()

    assert chunks.list_keys(Path("jobs")) == ["a", "b"]
    assert chunks.list_keys(None) == []
    assert chunks.list_keys(Path("jobs/file")) == []
    assert chunks.list_keys(Path("missing")) == []


def test_a_file_in_place_of_a_key_has_no_chunks(chunks: ChunkFolder, tmp_path: Path) -> None:
    (tmp_path / "store" / "jobs").write_bytes(b"")

    assert chunks.open_chunk(KEY, NAME) is None
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        put(chunks)
    assert unfinished(tmp_path) == []


def test_publishing_gives_up_if_the_key_is_deleted_again_and_again(
    chunks: ChunkFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    attempts = 0

    def raced(*_: object) -> None:
        nonlocal attempts
        attempts += 1
        raise FileNotFoundError(2, os.strerror(2))

    monkeypatch.setattr(UnfinishedFiles, "publish", raced)
    with pytest.raises(FileNotFoundError):
        put(chunks)

    assert attempts == 4
    assert unfinished(tmp_path) == []


def test_files_of_a_killed_store_are_removed_at_the_start(
    chunks: ChunkFolder, tmp_path: Path
) -> None:
    put(chunks)
    (tmp_path / "store" / ".unfinished" / "left").write_bytes(b"ro")
    with chunks.new_draft() as draft:
        draft.write([CONTENT])
        restarted = ChunkFolder(tmp_path / "store")
        assert restarted.orphans == 1, "the draft of a running store is kept"
        chunks.publish(draft, Path("jobs/other"), NAME)

    assert restarted.list_keys(Path("jobs")) == ["key", "other"]


def test_disk_space_is_reported(chunks: ChunkFolder) -> None:
    free, total = chunks.disk_space()

    assert 0 < free <= total
    chunks.check_writable()


@pytest.mark.parametrize("algorithm", [hashlib.sha256, blake3])
def test_checksums_of_all_releases_are_accepted(chunks: ChunkFolder, algorithm: Any) -> None:
    content = CONTENT * 100_000
    name = f"00000000-{algorithm(content).hexdigest()}.arrow"
    with chunks.new_draft() as draft:
        draft.write([content[:-5], content[-5:]])
        with pytest.raises(ChecksumMismatchError):
            chunks.publish(draft, KEY, f"00000000-{algorithm(CONTENT).hexdigest()}.arrow")
        chunks.publish(draft, KEY, name)
    opened = chunks.open_chunk(KEY, name)
    assert opened is not None
    with opened:
        assert opened.read() == content
