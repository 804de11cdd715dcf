"""Documents as rows: their columns, which files are opened, damaged and hostile files."""

import io
import os
import pickle
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_core.tables import scanners
from caraway_core.tables.scanners import ColumnFilter, RowRequest
from caraway_plugins.sources.decoded import documents
from caraway_plugins.sources.disk import Disk
from tests.kit.pdf_files import pdf
from tests.plugins.sources import reading

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_MODIFIED = 1_700_000_000

Put = Callable[[str, bytes], Path]
Make = Callable[..., reading.Dataset]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def write(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (_MODIFIED, _MODIFIED))
        return path

    return write


@pytest.fixture
def dataset(tmp_path: Path) -> Make:
    def make(path: str, declared: list[pa.Field] | None = None, **params: str) -> reading.Dataset:
        return reading.Dataset("file", path, tmp_path, params, declared or ())

    return make


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that were opened."""
    names: list[str] = []
    read = Disk.read

    def note(self: Disk, path: str, start: int, end: int) -> bytes:
        names.append(Path(path).name)
        return read(self, path, start, end)

    monkeypatch.setattr(Disk, "read", note)
    return names


def word(body: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", body)
    return content.getvalue()


def paragraphs(*texts: str) -> str:
    inner = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in texts)
    return f'<w:document xmlns:w="{_WORD}"><w:body>{inner}</w:body></w:document>'


def contents(dataset: reading.Dataset) -> Sequence[str]:
    return [row["content"] for row in dataset.rows("SELECT content FROM t ORDER BY location")]


def refused(dataset: reading.Dataset) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        dataset.resolve()
    return caught.value


def not_read(dataset: reading.Dataset) -> str:
    table = dataset.resolve()
    with pytest.raises(QueryError) as caught:
        list(scanners.of(table).scan(table, RowRequest(["content"])))
    return str(caught.value)


def test_each_file_is_a_row(put: Put, dataset: Make) -> None:
    path = put("d/a.md", "# Über\n".encode())
    put("d/sub/b.MARKDOWN", b"two")
    put("d/c.txt", b"not this one")
    found = dataset("d/", file_format="md").rows("SELECT * FROM t ORDER BY location")
    assert [row["content"] for row in found] == ["# Über\n", "two"]
    assert found[0]["location"] == str(path)
    assert found[0]["size"] == 8
    assert found[0]["last_modified"].timestamp() == _MODIFIED


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "a\nß".encode()),
        ("b.txt", "\N{BOM}a\nß".encode()),
        ("u.txt", "a\nß".encode("utf-16")),
        ("m.md", "a\nß".encode()),
        ("w.docx", word(paragraphs("a", "ß"))),
        ("p.pdf", pdf("a \\337")),
    ],
)
def test_the_text_of_each_format(name: str, content: bytes, put: Put, dataset: Make) -> None:
    put(name, content)
    assert [text.split() for text in contents(dataset(name))] == [["a", "ß"]]


def test_word_breaks_and_nested_runs_are_read_in_order(put: Put, dataset: Make) -> None:
    body = (
        f'<w:document xmlns:w="{_WORD}"><w:body><w:tbl><w:tr><w:tc><w:p><w:hyperlink><w:r>'
        "<w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t></w:r></w:hyperlink></w:p></w:tc>"
        "</w:tr></w:tbl><w:p><w:r><w:instrText>PAGE</w:instrText></w:r></w:p></w:body></w:document>"
    )
    put("w.docx", word(body))
    assert contents(dataset("w.docx")) == ["a\tb\nc\n"]


def test_an_empty_file_has_an_empty_text(put: Put, dataset: Make) -> None:
    put("a.txt", b"")
    assert contents(dataset("a.txt")) == [""]


def test_documents_about_data_are_not_the_data(put: Put, dataset: Make) -> None:
    put("d/x.csv", b"a\n1\n")
    put("d/README.md", b"about")
    assert dataset("d/").rows() == [{"a": 1}]
    (Path(dataset("d/").base_dir) / "d/x.csv").unlink()
    assert "unknown" in str(refused(dataset("d/")))
    assert contents(dataset("d/*.md")) == contents(dataset("d/**/*.md")) == ["about"]
    assert contents(dataset("d/README.md")) == ["about"]


def test_only_files_that_can_have_rows_are_opened(
    put: Put, dataset: Make, opened: list[str]
) -> None:
    for number in range(5):
        put(f"d/year=202{number}/{number}.txt", b"x" * number)
    made = dataset("d/", file_format="txt")
    assert len(made.rows("SELECT location, size, last_modified FROM t")) == 5
    assert made.rows("SELECT count(*) AS n FROM t WHERE size > 2") == [{"n": 2}]
    assert not opened
    assert made.rows("SELECT content, year FROM t WHERE size = 2") == [
        {"content": "xx", "year": 2022}
    ]
    assert made.rows("SELECT content FROM t WHERE year >= 2024") == [{"content": "xxxx"}]
    assert opened == ["2.txt", "4.txt"]
    assert not made.rows("SELECT content FROM t WHERE location = 'other' OR year IS NULL")


def test_a_limit_opens_no_more_files(put: Put, dataset: Make, opened: list[str]) -> None:
    for number in range(5):
        put(f"d/{number}.txt", b"x")
    table = dataset("d/", file_format="txt").resolve()
    scan = scanners.of(table).scan
    counted = RowRequest(["content"], filters=[ColumnFilter("size", "=", 1)], limit=2)
    assert sum(each.num_rows for each in scan(table, counted)) == 2
    assert opened == ["0.txt", "1.txt"]
    by_content = RowRequest(["content"], filters=[ColumnFilter("content", "=", "x")], limit=2)
    assert sum(each.num_rows for each in scan(table, by_content)) == 5


def test_parts_have_all_files_once(put: Put, dataset: Make) -> None:
    for number in range(150):
        put(f"d/{number:03}.txt", b"%d" % number)
    table = dataset("d/", file_format="txt").resolve()
    assert pickle.loads(pickle.dumps(table)) == table
    assert table.row_count == 150
    assert 1 < len(table.splits) <= 64
    assert len({part.name for part in table.splits}) == len(table.splits)
    found = [
        text
        for part in table.splits
        for batch in scanners.of(table).scan(table, RowRequest(["content"], [part]))
        for text in batch.column("content").to_pylist()
    ]
    assert sorted(map(int, found)) == list(range(150))


def test_rows_of_small_files_come_in_few_batches(put: Put, dataset: Make) -> None:
    for number in range(150):
        put(f"d/{number:03}.txt", b"x")
    table = dataset("d/", file_format="txt").resolve()
    assert len(list(scanners.of(table).scan(table, RowRequest(["content"])))) == 1


def test_a_closed_scan_ends(put: Put, dataset: Make, opened: list[str]) -> None:
    for number in range(3):
        put(f"d/{number}.txt", b"x" * 9_000_000)
    table = dataset("d/", file_format="txt").resolve()
    scan = scanners.of(table).scan(table, RowRequest(["content"]))
    found = iter(scan)
    next(found)
    scan.close()
    assert list(found) == []
    assert opened == ["0.txt", "1.txt"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", b"\xff\x00\x80", "is not text in UTF-8 or UTF-16"),
        ("a.md", b"\xff\xfea", "is not text in UTF-8 or UTF-16"),
        ("a.docx", b"PK\x03\x04 cut", "is damaged, encrypted or not a .docx"),
        ("a.docx", b"", "is damaged, encrypted or not a .docx"),
        ("a.docx", word("<w:document"), "is damaged, encrypted or not a .docx"),
        ("a.docx", word('<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'), "no word processor writes"),
        ("a.pdf", b"%PDF-1.4 cut", "is damaged or not a PDF"),
        ("a.pdf", b"", "is damaged or not a PDF"),
        ("a.pdf", pdf("a", "secret"), "is encrypted with a password"),
    ],
)
def test_damaged_files_are_named(
    name: str, content: bytes, said: str, put: Put, dataset: Make
) -> None:
    put(name, content)
    message = not_read(dataset(name))
    assert said in message
    assert name in message


def test_an_archive_that_expands_is_refused(
    put: Put, dataset: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caraway_plugins.sources.decoded.texts._MOST_TEXT_BYTES", 1_000)
    put("a.docx", word(paragraphs("a" * 10_000)))
    assert "of text; divide it" in not_read(dataset("a.docx"))


def test_a_large_document_is_refused_by_those_who_read_its_text(
    put: Put, dataset: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MOST_BYTES", 3)
    put("a.txt", b"four")
    assert dataset("a.txt").rows("SELECT size FROM t") == [{"size": 4}]
    assert "leave it out with a pattern" in not_read(dataset("a.txt"))


def test_declared_columns_must_be_those_of_documents(put: Put, dataset: Make) -> None:
    put("a.md", b"x")
    wrong = [pa.field("contents", pa.string())]
    assert "did you mean 'content'" in str(refused(dataset("a.md", wrong)))


def test_bad_params_are_refused(put: Put, dataset: Make) -> None:
    put("d/a.md", b"x")
    assert refused(dataset("d/", file_format="pdf")).type == "not_found"
    packed = dataset("d/", file_format="md", file_compression_type="gzip")
    assert refused(packed).type == "unsupported"
    assert "pdf" in str(refused(dataset("d/", file_format="pdff")))


def test_a_missing_library_is_named(
    put: Put, dataset: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caraway_plugins.sources.decoded.texts.find_spec", lambda _name: None)
    put("a.pdf", pdf("a"))
    assert "pip install 'caraway[documents]'" in not_read(dataset("a.pdf"))


def test_a_changed_document_has_another_fingerprint(put: Put, dataset: Make) -> None:
    put("a.md", b"x")
    before = dataset("a.md").fingerprint()
    put("a.md", b"xx")
    assert dataset("a.md").fingerprint() != before


def test_a_document_that_changed_since_it_was_listed_is_read_whole(put: Put, dataset: Make) -> None:
    path = put("a.md", b"x")
    table = dataset("a.md").resolve()
    path.write_bytes(b"longer")
    assert reading.query(table, "SELECT content FROM t") == [{"content": "longer"}]
    path.unlink()
    with pytest.raises(QueryError, match="was removed"):
        list(scanners.of(table).scan(table, RowRequest(["content"])))
