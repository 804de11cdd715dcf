"""Packages of manifests in a folder of this machine."""

import asyncio
from pathlib import Path

from caraway_core.manifest.texts import places
from caraway_core.packages import collecting, repositories
from caraway_core.packages.collecting import Package


async def of_folder(path: Path, git_url: str, token: str | None) -> Package:
    """Return the package of a manifest, or of the one in a folder.

    Dependencies in git repositories are those below `git_url`.

    Raises:
        ValueError: there is no manifest.
        InvalidRequestError: the manifest or what it refers to cannot be a package.
    """
    manifest = places.manifest_file(path)
    async with repositories.opened(git_url, token) as host:
        return await collecting.collect(FolderFiles(manifest.parent), manifest.name, host)


class FolderFiles:
    """The files of a folder. Symbolic links are not followed, as in a repository."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    async def read(self, path: str, most_bytes: int) -> bytes | None:
        """Return the content of a file; None if there is none of this path.

        Raises:
            ValueError: it is too large, unreadable, or reached by a symbolic link.
        """
        return await asyncio.to_thread(self._read, path, most_bytes)

    def _read(self, path: str, most_bytes: int) -> bytes | None:
        file = self._folder / path
        if not file.is_file():
            return None
        if file.resolve() != file:
            raise ValueError("is a symbolic link, which is not followed")
        try:
            with file.open("rb") as stream:
                content = stream.read(most_bytes + 1)
        except OSError as exc:
            raise ValueError(f"cannot be read: {exc.strerror}") from exc
        if len(content) > most_bytes:
            raise ValueError(f"has more than {most_bytes} bytes")
        return content
