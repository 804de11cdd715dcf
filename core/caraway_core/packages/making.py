"""Makes packages from git repositories: some at once, each in bounded time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from caraway_core import git
from caraway_core.errors import (
    DeadlineError,
    InvalidRequestError,
    NotInstalledError,
    UnavailableError,
)
from caraway_core.git import GitError
from caraway_core.packages import archives, collecting
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
            raise _late(source, self._timeout_s) from exc

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
        async with (
            asyncio.timeout(timeout_s),
            git.fetched(source.url(git_url), source.commit_sha, token) as checkout,
        ):
            return await collecting.collect(checkout, source.path)
    except TimeoutError as exc:
        raise _late(source, timeout_s) from exc
    except GitError as exc:
        raise _refusal(exc, source, timeout_s, has_token=token is not None) from exc


def _refusal(
    exc: GitError, source: PackageSource, timeout_s: float, *, has_token: bool
) -> InvalidRequestError | NotInstalledError | UnavailableError | DeadlineError:
    name = f"the repository '{source.org}/{source.repository}'"
    match exc.failure:
        case "no_git":
            return NotInstalledError("packages need the command git, which is not installed here")
        case "no_repository":
            remedy = "does not allow it" if has_token else "is needed for a private one"
            return InvalidRequestError(
                f"{name} does not exist or may not be read; check the name, and whether "
                f"'params.git_token' {remedy}"
            )
        case "no_commit":
            return InvalidRequestError(f"{name} has no commit {source.commit_sha}")
        case "redirected":
            return InvalidRequestError(
                f"{name} redirects to another place, which is not followed; use its new name"
            )
        case "too_large":
            return InvalidRequestError(f"{name} is too large to be read, or is damaged")
        case "timed_out":
            return _late(source, timeout_s)
        case _:
            return UnavailableError(f"{name} cannot be read: its host does not answer", 10)


def _late(source: PackageSource, timeout_s: float) -> DeadlineError:
    name = f"{source.org}/{source.repository}"
    return DeadlineError(f"the repository '{name}' could not be read within {timeout_s:g} s")
