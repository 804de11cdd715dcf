"""Collects a manifest, the files that its `ref`s name, and its dependencies, as files of a package.

Only files that manifests name are read, in the folder of the first one: neither data nor secrets.
"""

import asyncio
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from caraway_core.errors import InvalidRequestError, ManifestError
from caraway_core.manifest import document, file_references
from caraway_core.manifest.document import Document
from caraway_core.manifest.file_references import FileReference
from caraway_core.manifest.places import INSTALLED, MANIFEST_FILES, SINGULAR
from caraway_core.packages import paths

MOST_FILES = 500
MOST_BYTES = 16 * 1024 * 1024
"""Of all files of a package."""


class PackageFiles(Protocol):
    """The files that a package is made of: of a commit, or of a folder."""

    async def read(self, path: str, most_bytes: int) -> bytes | None:
        """Return the content of a file; None if there is none of this path.

        Raises:
            ValueError: it is too large, or no plain file.
        """
        ...


@dataclass(frozen=True, slots=True)
class Package:
    """The files of a package, by their paths below the folder of its manifest."""

    manifest: str
    files: dict[str, bytes] = field(repr=False)


async def collect(files: PackageFiles, path: str) -> Package:
    """Return the package of a manifest, or of the one in a folder.

    Raises:
        InvalidRequestError: the manifest or what it refers to cannot be a package.
    """
    return await _Collecting(files).package(path)


class _Collecting:
    """The state of one collection: the files that were read, by their paths below the top."""

    def __init__(self, files: PackageFiles) -> None:
        self._files = files
        self._root = ""
        self._read: dict[str, bytes] = {}
        self._finished: set[str] = set()

    async def package(self, path: str) -> Package:
        manifest = await self._first((path,), MANIFEST_FILES)
        if manifest is None:
            raise InvalidRequestError(
                f"there is no manifest '{path}'; name a file, or a folder that holds one of "
                + ", ".join(MANIFEST_FILES)
            )
        self._root = posixpath.dirname(manifest)
        await self._add_manifest(manifest)
        found = {self._below(name): content for name, content in self._read.items()}
        return Package(self._below(manifest), found)

    async def _add_manifest(self, path: str) -> None:
        if path in self._finished:
            return
        self._finished.add(path)
        content = await self._document(path)
        if not {"kind", "name"} <= set(content.value):
            raise InvalidRequestError(f"'{path}' is no manifest: it has no 'kind' and 'name'")
        for reference in file_references.of_manifest(content):
            await self._add(reference, content)

    async def _add(self, reference: FileReference, content: Document) -> None:
        text, folder = reference.path, posixpath.dirname(str(content.path))
        subject = f"'{content.path}': {document.dotted(reference.location)}"
        if not isinstance(text, str) or not text:
            raise InvalidRequestError(f"{subject} must be the path of a file or a folder")
        places: list[tuple[str, str]] = [(folder, text)]
        names: tuple[str, ...] = ()
        if reference.kind == "dependency":
            places += [(posixpath.join(each, INSTALLED), text) for each in (folder, self._root)]
            names = MANIFEST_FILES
        elif reference.kind == "component":
            singular = SINGULAR[reference.section]
            names = f"{singular}.yaml", f"{singular}.yml"
        found = [self._inside(each, text, subject) for each, text in dict.fromkeys(places)]
        file = await self._first(found, names)
        if file is None:
            raise InvalidRequestError(f"{subject}: the package has no '{text}'")
        if reference.kind == "dependency":
            await self._add_manifest(file)
        elif reference.kind == "component" and file not in self._finished:
            self._finished.add(file)
            component = await self._document(file)
            for each in file_references.of_component(component):
                await self._add(each, component)

    def _inside(self, folder: str, text: str, subject: str) -> str:
        return posixpath.join(self._root, paths.inside(self._below(folder), text, subject))

    def _below(self, path: str) -> str:
        return path[len(self._root) + 1 :] if self._root else path

    async def _first(self, found: Sequence[str], names: tuple[str, ...]) -> str | None:
        """Return the first file that exists: one of the paths, or one of these names in it."""
        for path in found:
            for each in (path, *(f"{path}/{name}" for name in names)):
                if each in self._read or await self._take(each):
                    return each
        return None

    async def _take(self, path: str) -> bool:
        if len(self._read) >= MOST_FILES:
            raise InvalidRequestError(f"the package has more than {MOST_FILES} files")
        room = MOST_BYTES - sum(map(len, self._read.values()))
        try:
            content = await self._files.read(path, min(document.MAX_FILE_BYTES, room))
        except ValueError as exc:
            raise InvalidRequestError(f"'{path}' {exc}") from exc
        if content is None:
            return False
        self._read[path] = content
        return True

    async def _document(self, path: str) -> Document:
        try:
            text = self._read[path].decode("utf-8-sig")
            return await asyncio.to_thread(document.parse, text, Path(path))
        except UnicodeDecodeError as exc:
            raise InvalidRequestError(f"'{path}' is not UTF-8") from exc
        except ManifestError as exc:
            raise InvalidRequestError(str(exc.problems[0])) from exc
