"""The repositories of one host that a package is made of, each fetched once."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from caraway_core.errors import (
    DeadlineError,
    InvalidRequestError,
    NotInstalledError,
    UnavailableError,
)
from caraway_core.packages import git
from caraway_core.packages.git import Checkout, GitError
from caraway_core.packages.sources import PackageSource

MOST_REPOSITORIES = 8
"""Commits of repositories in one package."""


@dataclass(frozen=True, slots=True)
class RepositoryFiles:
    """The files of one commit of a repository."""

    source: PackageSource
    checkout: Checkout
    has_token: bool

    async def read(self, path: str, most_bytes: int) -> bytes | None:
        """Return the content of a file; None if there is none of this path.

        Raises:
            ValueError: it is too large, or no plain file.
            CarawayError: it cannot be read.
        """
        try:
            return await self.checkout.read(path, most_bytes)
        except GitError as exc:
            raise _refusal(exc, self.source, has_token=self.has_token) from exc


class GitRepositories:
    """The repositories below a URL. All are read with the same token."""

    def __init__(
        self, kept: contextlib.AsyncExitStack, git_url: str, token: str | None = None
    ) -> None:
        """Create it; fetched files are removed when `kept` ends."""
        self._kept = kept
        self._git_url = git_url
        self._token = token
        self._fetched: dict[tuple[str, str], RepositoryFiles] = {}

    async def files(self, source: PackageSource) -> RepositoryFiles:
        """Return the files of the commit that a source names.

        Raises:
            InvalidRequestError: there is no such commit, or there are too many repositories.
            NotInstalledError: there is no git here.
            UnavailableError: the host is away.
            DeadlineError: it took too long.
        """
        url = source.url(self._git_url)
        key = url, source.commit_sha
        if key not in self._fetched:
            if len(self._fetched) >= MOST_REPOSITORIES:
                raise InvalidRequestError(
                    f"the package has dependencies in more than {MOST_REPOSITORIES} repositories"
                )
            has_token = self._token is not None
            try:
                checkout = await self._kept.enter_async_context(
                    git.fetched(url, source.commit_sha, self._token)
                )
            except GitError as exc:
                raise _refusal(exc, source, has_token=has_token) from exc
            self._fetched[key] = RepositoryFiles(source, checkout, has_token)
        return self._fetched[key]


@contextlib.asynccontextmanager
async def opened(git_url: str, token: str | None) -> AsyncIterator[GitRepositories]:
    """Yield the repositories of a host, and remove their fetched files."""
    async with contextlib.AsyncExitStack() as kept:
        yield GitRepositories(kept, git_url, token)


def late(source: PackageSource, timeout_s: float) -> DeadlineError:
    """Return the error for a repository that could not be read within a time limit."""
    name = f"{source.org}/{source.repository}"
    return DeadlineError(f"the repository '{name}' could not be read within {timeout_s:g} s")


def _refusal(
    exc: GitError, source: PackageSource, *, has_token: bool
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
            return late(source, git.TIMEOUT_S)
        case _:
            return UnavailableError(f"{name} cannot be read: its host does not answer", 10)
