"""Repositories of a package: each commit is fetched once, and failures say what to do."""

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from caraway_core.errors import (
    CarawayError,
    DeadlineError,
    InvalidRequestError,
    NotInstalledError,
    UnavailableError,
)
from caraway_core.packages import git, repositories
from caraway_core.packages.git import GitError, GitFailure
from caraway_core.packages.sources import PackageSource


def source(name: str = "shop", sha: str = "0" * 40) -> PackageSource:
    return PackageSource("acme", name, sha, "caraway.yaml")


class Git:
    """The command git: what was fetched, what was removed, and how it fails."""

    def __init__(self) -> None:
        self.fetched_urls: list[str] = []
        self.removed = 0
        self.failure: GitFailure | None = None

    @contextlib.asynccontextmanager
    async def fetched(self, url: str, sha: str, token: str | None = None) -> AsyncIterator[Any]:
        self.fail()
        self.fetched_urls.append(url)
        yield SimpleNamespace(read=self.read)
        self.removed += 1

    async def read(self, path: str, most_bytes: int) -> bytes | None:
        self.fail()
        return path.encode()

    def fail(self) -> None:
        if self.failure is not None:
            raise GitError("said hunter2", self.failure)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Git:
    command = Git()
    monkeypatch.setattr(git, "fetched", command.fetched)
    return command


async def test_each_commit_is_fetched_once_and_removed_at_the_end(command: Git) -> None:
    async with repositories.opened("https://git.test/", None) as host:
        first = await host.files(source())
        assert await host.files(source()) is first
        assert await host.files(source("shop.git")) is first
        await host.files(source(sha="1" * 40))
        assert await first.read("a", 10) == b"a"
        assert command.removed == 0
    assert command.fetched_urls == ["https://git.test/acme/shop.git"] * 2
    assert command.removed == 2


async def test_a_package_has_few_repositories(command: Git) -> None:
    async with repositories.opened("https://git.test", None) as host:
        for number in range(repositories.MOST_REPOSITORIES):
            await host.files(source(f"r{number}"))
        await host.files(source("r0"))
        with pytest.raises(InvalidRequestError, match="in more than 8 repositories"):
            await host.files(source("one-more"))


FAILURES: list[tuple[GitFailure, type[CarawayError], str]] = [
    ("no_git", NotInstalledError, "need the command git"),
    (
        "no_repository",
        InvalidRequestError,
        "does not exist or may not be read.*is needed for a pri",
    ),
    ("no_commit", InvalidRequestError, f"has no commit {'0' * 40}"),
    ("redirected", InvalidRequestError, "redirects to another place.*use its new name"),
    ("too_large", InvalidRequestError, "is too large to be read, or is damaged"),
    ("timed_out", DeadlineError, "could not be read within"),
    ("away", UnavailableError, "its host does not answer"),
]


@pytest.mark.parametrize(("failure", "error", "message"), FAILURES)
async def test_failures_name_the_repository_and_hide_what_git_said(
    command: Git, failure: GitFailure, error: type[CarawayError], message: str
) -> None:
    async with repositories.opened("https://git.test", None) as host:
        files = await host.files(source())
        command.failure = failure
        for work in (partial(host.files, source("other")), partial(files.read, "a", 10)):
            with pytest.raises(error, match=message) as caught:
                await work()
            assert "hunter2" not in caught.value.message
            assert failure == "no_git" or "'acme/" in caught.value.message


async def test_a_token_that_is_refused_is_told_apart_from_none(command: Git) -> None:
    command.failure = "no_repository"
    async with repositories.opened("https://git.test", "t0ken") as host:
        with pytest.raises(InvalidRequestError, match=r"'params\.git_token' does not allow it"):
            await host.files(source())
