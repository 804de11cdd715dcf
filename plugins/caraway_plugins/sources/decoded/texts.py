"""The text of a document: plain text, Markdown, PDF and Word."""

import io
import logging
import zipfile
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from xml.etree import ElementTree

_MOST_TEXT_BYTES = 256 * 2**20
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_BODY = "word/document.xml"
_MARKS = {f"{_WORD}tab": "\t", f"{_WORD}br": "\n", f"{_WORD}cr": "\n"}


class NoTextError(ValueError):
    """The text of a file cannot be read. The message follows the name of the file."""


def read(format_: str, content: bytes) -> str:
    """Return the text of a file.

    Raises:
        NoTextError: the file is damaged, encrypted, or has another format.
    """
    return _READERS[format_](content)


def _plain(content: bytes) -> str:
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        pass
    raise NoTextError("is not text in UTF-8 or UTF-16; convert it")


def _word(content: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if archive.getinfo(_BODY).file_size > _MOST_TEXT_BYTES:
                raise NoTextError(f"has more than {_MOST_TEXT_BYTES >> 20} MiB of text; divide it")
            with archive.open(_BODY) as body:
                # The size that the archive declares may be wrong.
                xml = body.read(_MOST_TEXT_BYTES + 1)
        if len(xml) > _MOST_TEXT_BYTES or b"<!DOCTYPE" in xml[:1024]:
            raise NoTextError("has a body that no word processor writes; save it again")
        root = ElementTree.fromstring(xml)
        return "\n".join(map(_paragraph, root.iter(f"{_WORD}p")))
    except NoTextError:
        raise
    # Archives and XML that are damaged fail in many ways, one for each compression and encoding.
    except Exception as exc:
        raise NoTextError("is damaged, encrypted or not a .docx file; save it again") from exc


def _paragraph(paragraph: ElementTree.Element) -> str:
    return "".join(_parts(paragraph))


def _parts(element: ElementTree.Element) -> Iterator[str]:
    for child in element:
        if child.tag == f"{_WORD}t":
            yield child.text or ""
        elif child.tag in _MARKS:
            yield _MARKS[child.tag]
        # A paragraph in a text box is a paragraph of its own.
        elif child.tag != f"{_WORD}p":
            yield from _parts(child)


def _pdf(content: bytes) -> str:
    if find_spec("pypdf") is None:
        raise NoTextError(
            "needs the package 'pypdf', which is not installed; install it with: "
            "pip install 'caraway[documents]'"
        )
    import pypdf

    # It warns of each flaw of a file, and reads most of them.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise NoTextError("is encrypted with a password; store it without")
        return "\n".join(page.extract_text() for page in reader.pages)
    except NoTextError:
        raise
    # Damaged files fail in many ways.
    except Exception as exc:
        raise NoTextError("is damaged or not a PDF file; store it again") from exc


_READERS: Mapping[str, Callable[[bytes], str]] = {
    "txt": _plain,
    "md": _plain,
    "pdf": _pdf,
    "docx": _word,
}
