"""Collects a manifest, the files that its `ref`s name, and its dependencies, as files of a package.

Only files that manifests name are read, in the folder of the first one: neither data nor secrets.
Dependencies in other repositories are in the folder `spicepods` of the package.
"""

import asyncio
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from caraway_core.errors import InvalidRequestError, ManifestError
from caraway_core.manifest.documents import document, file_references
from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.documents.file_references import FileReference
from caraway_core.manifest.texts.places import INSTALLED, MANIFEST_FILES, SINGULAR
from caraway_core.packages import paths, sources
from caraway_core.packages.sources import PackageSource

MOST_FILES = 500
MOST_BYTES = 16 * 1024 * 1024
"""Of all files of a package."""
MOST_DEPTH = 32
"""Of manifests, each a dependency of the one before."""


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


class PackageRepositories(Protocol):
    """The repositories of other packages that a package depends on."""

    async def files(self, source: PackageSource) -> PackageFiles:
        """Return the files of a commit of a repository.

        Raises:
            InvalidRequestError: there is none.
        """
        ...


async def collect(files: PackageFiles, path: str, others: PackageRepositories) -> Package:
    """Return the package of a manifest, or of the one in a folder.

    Raises:
        InvalidRequestError: the manifest or what it refers to cannot be a package.
    """
    return await _Collecting(others).package(files, path)


@dataclass(frozen=True, slots=True)
class _Part:
    """The folder of a manifest in a repository, and its place in the package."""

    files: PackageFiles
    root: str
    place: str = ""
    title: str = ""

    def placed(self, path: str) -> str:
        """Return the path in the package of a file of the repository."""
        return posixpath.join(self.place, self.below(path))

    def below(self, path: str) -> str:
        return path[len(self.root) + 1 :] if self.root else path

    def above(self, folder: str) -> Iterator[str]:
        """Yield a folder of the repository, and those above it in this part."""
        while folder != self.root:
            yield folder
            folder = posixpath.dirname(folder)
        yield self.root

    def inside(self, folder: str, text: str, subject: str) -> str:
        """Return the path in the repository that a file in a folder names."""
        return posixpath.join(self.root, paths.inside(self.below(folder), text, subject))


class _Collecting:
    """The state of one collection: the files that were read, by their paths in the package."""

    def __init__(self, others: PackageRepositories) -> None:
        self._others = others
        self._read: dict[str, bytes] = {}
        self._finished: set[str] = set()

    async def package(self, files: PackageFiles, path: str) -> Package:
        part, manifest = await self._begun(files, path)
        await self._add_manifest(part, manifest, 0)
        return Package(part.placed(manifest), self._read)

    async def _begun(
        self, files: PackageFiles, path: str, source: PackageSource | None = None
    ) -> tuple[_Part, str]:
        """Find the manifest of a package, whose folder is then its part."""
        for each in (path, *(f"{path}/{name}" for name in MANIFEST_FILES)):
            root = posixpath.dirname(each)
            part = _Part(files, root)
            if source is not None:
                place = posixpath.join(INSTALLED, source.commit, root)
                part = _Part(files, root, place, f"{source.commit}/")
            if await self._has(part, each):
                return part, each
        raise InvalidRequestError(
            f"there is no manifest '{path}'; name a file, or a folder that holds one of "
            + ", ".join(MANIFEST_FILES)
        )

    async def _add_manifest(self, part: _Part, path: str, depth: int) -> None:
        if part.placed(path) in self._finished:
            return
        if depth > MOST_DEPTH:
            raise InvalidRequestError(f"dependencies are nested more than {MOST_DEPTH} deep")
        self._finished.add(part.placed(path))
        content = await self._document(part, path)
        if not {"kind", "name"} <= set(content.value):
            raise InvalidRequestError(
                f"'{content.path}' is no manifest: it has no 'kind' and 'name'"
            )
        for reference in file_references.of_manifest(content):
            await self._add(part, reference, path, content, depth)

    async def _add(
        self, part: _Part, reference: FileReference, named_in: str, content: Document, depth: int
    ) -> None:
        text, folder = reference.path, posixpath.dirname(named_in)
        subject = f"'{content.path}': {document.dotted(reference.location)}"
        if not isinstance(text, str) or not text:
            raise InvalidRequestError(f"{subject} must be the path of a file or a folder")
        source = None
        places = [(folder, text)]
        names: tuple[str, ...] = ()
        if reference.kind == "dependency":
            if sources.is_source(text):
                source = sources.parse(text, subject)
                text = f"{source.commit}/{source.path}"
                places = []
            places += [(posixpath.join(each, INSTALLED), text) for each in part.above(folder)]
            names = MANIFEST_FILES
        elif reference.kind == "component":
            singular = SINGULAR[reference.section]
            names = f"{singular}.yaml", f"{singular}.yml"
        found = [part.inside(each, text, subject) for each, text in dict.fromkeys(places)]
        file = await self._first(part, found, names)
        if file is None and source is not None:
            files = await self._others.files(source)
            await self._add_manifest(*await self._begun(files, source.path, source), depth + 1)
            return
        if file is None:
            raise InvalidRequestError(f"{subject}: the package has no '{text}'")
        if reference.kind == "dependency":
            await self._add_manifest(part, file, depth + 1)
        elif reference.kind == "component" and part.placed(file) not in self._finished:
            self._finished.add(part.placed(file))
            component = await self._document(part, file)
            for each in file_references.of_component(component):
                await self._add(part, each, file, component, depth)

    async def _first(self, part: _Part, found: Sequence[str], names: tuple[str, ...]) -> str | None:
        """Return the first file that exists: one of the paths, or one of these names in it."""
        for path in found:
            for each in (path, *(f"{path}/{name}" for name in names)):
                if await self._has(part, each):
                    return each
        return None

    async def _has(self, part: _Part, path: str) -> bool:
        """Read a file, unless it was read, and return whether it exists."""
        placed = part.placed(path)
        if placed in self._read:
            return True
        if len(self._read) >= MOST_FILES:
            raise InvalidRequestError(f"the package has more than {MOST_FILES} files")
        room = MOST_BYTES - sum(map(len, self._read.values()))
        try:
            content = await part.files.read(path, min(document.MAX_FILE_BYTES, room))
        except ValueError as exc:
            raise InvalidRequestError(f"'{part.title}{path}' {exc}") from exc
        if content is None:
            return False
        self._read[placed] = content
        return True

    async def _document(self, part: _Part, path: str) -> Document:
        title = f"{part.title}{path}"
        try:
            text = self._read[part.placed(path)].decode("utf-8-sig")
            return await asyncio.to_thread(document.parse, text, Path(title))
        except UnicodeDecodeError as exc:
            raise InvalidRequestError(f"'{title}' is not UTF-8") from exc
        except ManifestError as exc:
            raise InvalidRequestError(str(exc.problems[0])) from exc
