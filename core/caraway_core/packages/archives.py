"""Packages as zip files. Equal packages have equal bytes."""

import io
import zipfile
import zlib

from caraway_core.errors import InvalidRequestError
from caraway_core.packages import paths
from caraway_core.packages.collecting import MOST_BYTES, MOST_FILES, Package

_STAMP = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, zlib.error)
"""Errors of the library for bytes that are not a zip file, or a damaged or encrypted one."""


def zipped(package: Package) -> bytes:
    """Return the bytes of a zip file. Its first entry is the manifest."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(package.files, key=lambda each: (each != package.manifest, each)):
            entry = zipfile.ZipInfo(name, _STAMP)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = _MODE
            archive.writestr(entry, package.files[name])
    return stream.getvalue()


def unzipped(content: bytes) -> Package:
    """Return the package in a zip file.

    Raises:
        InvalidRequestError: it is none, is too large, or has paths that leave its folder.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [each for each in archive.infolist() if not each.filename.endswith("/")]
            if len(entries) > MOST_FILES or sum(each.file_size for each in entries) > MOST_BYTES:
                raise InvalidRequestError("the package is too large")
            if any(each.compress_type not in _COMPRESSIONS for each in entries):
                raise InvalidRequestError("the package must be a zip file of the usual compression")
            files: dict[str, bytes] = {}
            for each in entries:
                name = paths.inside("", each.filename, "a path of the package")
                # The size that an entry states may be wrong.
                with archive.open(each) as stream:
                    files[name] = stream.read(each.file_size + 1)
    except _BROKEN as exc:
        raise InvalidRequestError(
            "the file is no zip file, is damaged, or is encrypted; make it again"
        ) from exc
    if not files:
        raise InvalidRequestError("the package is empty")
    return Package(next(iter(files)), files)
