"""Files of models in a result store: sent once, fetched whole, checked."""

from pathlib import Path

import pytest

from caraway_ai.local import sent_files
from caraway_ai.local.sent_files import FileSender, SentFile, fetch
from caraway_core.errors import ModelError
from caraway_core.tables import ResultPlace
from caraway_plugins.stores.folder import FolderResultStore

CONTENT = bytes(range(256)) * 1000


def nothing(_progress: str) -> None:
    pass


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sent_files, "_ROW_BYTES", 10_000)
    monkeypatch.setattr(sent_files, "_CHUNK_BYTES", 100_000)
    path = tmp_path / "m.gguf"
    path.write_bytes(CONTENT)
    return path


def sender(tmp_path: Path) -> FileSender:
    return FileSender(ResultPlace("file", str(tmp_path / "store")), tmp_path / "sent")


async def test_a_file_comes_back_whole(tmp_path: Path, file: Path) -> None:
    sent = await sender(tmp_path).send(file, "m.gguf")
    assert (sent.path, sent.size_bytes, len(sent.chunks)) == ("m.gguf", len(CONTENT), 3)
    told: list[str] = []
    await fetch(sent, tmp_path / "new" / "x.gguf", told.append)
    assert (tmp_path / "new" / "x.gguf").read_bytes() == CONTENT
    assert len(told) == 3 and told[0] == "fetching 0 of 0 MiB"
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["x.gguf"]


async def test_a_file_is_sent_once(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = await sender(tmp_path).send(file, "m.gguf")
    write, written = FolderResultStore.write_chunk, list[int]()

    async def counted(self: FolderResultStore, key: str, index: int, *rest: object) -> object:
        written.append(index)
        return await write(self, key, index, *rest)  # type: ignore[arg-type] # as given

    monkeypatch.setattr(FolderResultStore, "write_chunk", counted)
    assert await sender(tmp_path).send(file, "m.gguf") == sent
    assert not written
    # Chunks that the store has lost are sent again.
    await FolderResultStore(tmp_path / "store").delete(sent.key)
    assert await sender(tmp_path).send(file, "m.gguf") == sent
    assert written == [0, 1, 2]
    file.write_bytes(b"other")
    other = await sender(tmp_path).send(file, "m.gguf")
    assert other.key != sent.key


async def test_the_record_of_an_earlier_release_is_read(tmp_path: Path, file: Path) -> None:
    sent = await sender(tmp_path).send(file, "m.gguf")
    (record,) = tmp_path.rglob("file-*.json")
    record.write_text(record.read_text().replace('"checksum"', '"sha256"'))
    assert '"sha256"' in record.read_text()
    assert await sender(tmp_path).send(file, "m.gguf") == sent


async def test_a_file_that_is_too_large_is_not_sent(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sent_files, "MOST_BYTES", len(CONTENT) - 1)
    with pytest.raises(ModelError, match="mount it at this path"):
        await sender(tmp_path).send(file, "m.gguf")


@pytest.mark.parametrize(
    ("fault", "words"),
    [("damaged", "cannot be fetched"), ("gone", "cannot be fetched"), ("other", "is damaged"),
     ("disk", "cannot be written")],
)  # fmt: skip
async def test_what_is_not_whole_is_no_file(
    tmp_path: Path, file: Path, fault: str, words: str
) -> None:
    sent = await sender(tmp_path).send(file, "m.gguf")
    folder = tmp_path / "store" / sent.key
    target = tmp_path / "new" / "x.gguf"
    match fault:
        case "damaged":
            for each in folder.iterdir():
                each.write_bytes(b"nothing")
        case "gone":
            await FolderResultStore(tmp_path / "store").delete(sent.key)
        case "other":
            sent = SentFile("m.gguf", 9, sent.sha256, sent.place, sent.chunks[:1])
        case "disk":
            target.parent.write_text("a file")
    with pytest.raises(ModelError, match=words):
        await fetch(sent, target, nothing)
    assert not target.exists()
    assert not [*tmp_path.glob("new/*")]
