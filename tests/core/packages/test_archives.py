"""Packages as zip files: the same bytes for the same files, and no harm from foreign ones."""

import io
import zipfile

import pytest

from caraway_core.errors import InvalidRequestError
from caraway_core.packages import archives
from caraway_core.packages.collecting import MOST_BYTES, MOST_FILES, Package

PACKAGE = Package("z.yaml", {"a/b.sql": b"select 1", "z.yaml": b"name: app\n"})


def archive(files: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as written:
        for name, content in files.items():
            written.writestr(name, content)
    return stream.getvalue()


def test_a_package_comes_back_with_its_manifest_first() -> None:
    content = archives.zipped(PACKAGE)
    assert archives.unzipped(content) == PACKAGE
    with zipfile.ZipFile(io.BytesIO(content)) as read:
        assert read.namelist() == ["z.yaml", "a/b.sql"]


def test_equal_packages_have_equal_bytes() -> None:
    files = dict(reversed(PACKAGE.files.items()))
    assert archives.zipped(Package("z.yaml", files)) == archives.zipped(PACKAGE)


def test_folders_are_left_out() -> None:
    assert archives.unzipped(archive({"a/": b"", "a/b": b"x"})) == Package("a/b", {"a/b": b"x"})


def damaged() -> bytes:
    content = bytearray(archive({"a": bytes(range(256)) * 40}, zipfile.ZIP_STORED))
    content[200] ^= 0xFF
    return bytes(content)


def encrypted() -> bytes:
    content = bytearray(archive({"a": b"x"}))
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(signature) + offset] |= 1
    return bytes(content)


def of_wrong_size() -> bytes:
    """An archive that states 1 byte for an entry of 1,000."""
    content = archive({"a": b"x" * 1000}, zipfile.ZIP_STORED)
    return content.replace((1000).to_bytes(4, "little"), (1).to_bytes(4, "little"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no zip file"),
        (b"PK\3\4", "is no zip file"),
        (archives.zipped(PACKAGE)[:-30], "is no zip file"),
        (damaged(), "is damaged"),
        (encrypted(), "is encrypted"),
        (of_wrong_size(), "is damaged"),
        (archive({}), "the package is empty"),
        (archive({"a/": b""}), "the package is empty"),
        (archive({"a": b"x"}, zipfile.ZIP_BZIP2), "of the usual compression"),
        (archive({"a": b"x"}, zipfile.ZIP_LZMA), "of the usual compression"),
        (archive({"../a": b"x"}), "a path of the package must name a file in the folder"),
        (archive({"/a": b"x"}), "a path of the package must name a file in the folder"),
        (archive({"a\\..\\b:c": b"x"}), "a path of the package has characters"),
        (archive({f"{n}": b"" for n in range(MOST_FILES + 1)}), "the package is too large"),
        (archive({"a": bytes(MOST_BYTES + 1)}), "the package is too large"),
    ],
)  # fmt: skip
def test_what_is_no_package_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        archives.unzipped(content)
    assert message in caught.value.message
