"""Texts of documents: each form of text, and damaged files, which have an error of their own."""

import io
import zipfile

import pytest

from caraway_plugins.sources.decoded import texts
from caraway_plugins.sources.decoded.texts import NoTextError

_SPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_PART = "word/document.xml"


def document(*paragraphs: str) -> str:
    written = "".join(f"<w:p>{each}</w:p>" for each in paragraphs)
    return f"<w:document {_SPACE}><w:body>{written}</w:body></w:document>"


def archive(content: str | bytes, name: str = _PART, kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as written:
        written.writestr(name, content)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", ""),
        ("dépôt\n".encode(), "dépôt\n"),
        (b"\xef\xbb\xbfa", "a"),
        ("\ufeffa€".encode("utf-16-le"), "a€"),
        ("\ufeffa€".encode("utf-16-be"), "a€"),
    ],
)
@pytest.mark.parametrize("format_", ["txt", "md"])
def test_encodings_of_plain_text(format_: str, content: bytes, text: str) -> None:
    assert texts.read(format_, content) == text


@pytest.mark.parametrize("content", [b"\xff", b"caf\xe9", b"\xff\xfea", b"\xff\xfe\x00\xd8"])
def test_other_bytes_are_no_text(content: bytes) -> None:
    with pytest.raises(NoTextError, match="UTF-8 or UTF-16"):
        texts.read("txt", content)


@pytest.mark.parametrize(
    ("paragraphs", "text"),
    [
        ([], ""),
        (["<w:r><w:t>a</w:t></w:r>", "<w:r><w:t>b</w:t></w:r>"], "a\nb"),
        (["<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t/><w:cr/></w:r>"], "a\tb\n\n"),
        (["<w:hyperlink><w:r><w:t>link</w:t></w:r></w:hyperlink>"], "link"),
        (["<w:r><w:t>a</w:t><w:box><w:p><w:r><w:t>in it</w:t></w:r></w:p></w:box></w:r>"],
         "a\nin it"),
    ],
)  # fmt: skip
def test_paragraphs_of_word(paragraphs: list[str], text: str) -> None:
    assert texts.read("docx", archive(document(*paragraphs))) == text


_DEEP = document("<w:r>" * 5_000 + "</w:r>" * 5_000)
_KINDS = (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        archive("<a/>", "other.xml"),
        archive("<a>"),
        archive(_DEEP),
        archive('<?xml version="1.0" encoding="utf-32"?><a/>'),
        archive('<?xml version="1.0" encoding="of-mars"?><a/>'),
        archive(document())[:-30],
    ],
)
def test_what_is_no_file_of_word(content: bytes) -> None:
    with pytest.raises(NoTextError, match="damaged, encrypted or not"):
        texts.read("docx", content)


@pytest.mark.parametrize("kind", _KINDS)
def test_each_damaged_byte_has_a_text_or_an_error_that_says_so(kind: int) -> None:
    whole = archive(document("<w:r><w:t>hello</w:t></w:r>"), kind=kind)
    damaged = 0
    for place in range(len(whole)):
        content = bytearray(whole)
        content[place] ^= 0xFF
        try:
            assert texts.read("docx", bytes(content)) == "hello"
        except NoTextError:
            damaged += 1
    assert damaged > len(whole) / 3


def test_entities_are_refused() -> None:
    body = '<!DOCTYPE a [<!ENTITY b "c">]>' + document("<w:r><w:t>&b;</w:t></w:r>")
    with pytest.raises(NoTextError, match="no word processor writes"):
        texts.read("docx", archive(body))


def test_large_bodies_are_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_MOST_TEXT_BYTES", 1_000)
    with pytest.raises(NoTextError, match="divide it"):
        texts.read("docx", archive(document("x" * 1_000)))


def test_sizes_that_archives_declare_may_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_MOST_TEXT_BYTES", 1_000)
    content = archive(document("x" * 1_000))
    directory = content.rindex(b"PK\x01\x02")
    lying = bytearray(content)
    lying[directory + 24 : directory + 28] = (999).to_bytes(4, "little")
    with pytest.raises(NoTextError):
        texts.read("docx", bytes(lying))


@pytest.mark.parametrize("content", [b"", b"%PDF-1.7\n", b"not a PDF", b"\x00" * 100])
def test_what_is_no_pdf(content: bytes) -> None:
    with pytest.raises(NoTextError, match="damaged or not a PDF"):
        texts.read("pdf", content)
