"""Makes packages from git repositories: some at once, each in bounded time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from caraway_core.errors import UnavailableError
from caraway_core.packages import archives, collecting, repositories
from caraway_core.packages.collecting import Package
from caraway_core.packages.sources import PackageSource

_AT_ONCE = 2
_MOST_WAITING = 16


class PackageMaker:
    """Makes packages for the requests of one process."""

    def __init__(self, timeout_s: float = 60.0) -> None:
        self._timeout_s = timeout_s
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0

    async def zipped(self, source: PackageSource, git_url: str, token: str | None) -> bytes:
        """Return the zip file of a package.

        Raises:
            InvalidRequestError: there is no such package, or it cannot be one.
            NotInstalledError: there is no git here.
            UnavailableError: the host is away, or there are too many requests.
            DeadlineError: it took too long.
        """
        try:
            async with asyncio.timeout(self._timeout_s), self._slot():
                package = await fetch(source, git_url, token, self._timeout_s)
                return await asyncio.to_thread(archives.zipped, package)
        except TimeoutError as exc:
            raise repositories.late(source, self._timeout_s) from exc

    @contextlib.asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        if self._waiting >= _MOST_WAITING:
            raise UnavailableError("too many packages are being made; try again later", 10)
        self._waiting += 1
        try:
            async with self._slots:
                yield
        finally:
            self._waiting -= 1


async def fetch(
    source: PackageSource, git_url: str, token: str | None, timeout_s: float = 60.0
) -> Package:
    """Return the package of a manifest in a repository.

    Raises:
        InvalidRequestError: there is no such package, or it cannot be one.
        NotInstalledError: there is no git here.
        UnavailableError: the host is away.
        DeadlineError: it took too long.
    """
    try:
        async with asyncio.timeout(timeout_s), repositories.opened(git_url, token) as host:
            return await collecting.collect(await host.files(source), source.path, host)
    except TimeoutError as exc:
        raise repositories.late(source, timeout_s) from exc
