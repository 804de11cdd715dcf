"""Reads files of remote repositories by the command `git`, in a folder that is removed again.

Nothing is checked out, and no hook, filter, submodule or configuration of a user is read, so that
what a repository holds runs nothing. Time, memory, output and files are bounded. Where the server
can leave out contents, only the files that are read are fetched.
"""

import asyncio
import base64
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from caraway_core.errors import CarawayError

TIMEOUT_S = 60.0
_MOST_OUTPUT = 8 * 1024 * 1024
_MOST_FILE_BLOCKS = 512 * 1024
"""Blocks of 512 bytes: no file that git writes is larger."""
_MOST_MEMORY_KIB = 2 * 1024 * 1024
_SETTINGS = (
    "core.hooksPath=/dev/null", "protocol.allow=never", "http.followRedirects=false",
    "credential.helper=", "gc.auto=0", "maintenance.auto=false", "pack.threads=1",
    # Contents are written while they are unpacked, and are not held in memory.
    "core.bigFileThreshold=1m", "fetch.unpackLimit=1",
)  # fmt: skip
_KEPT = ("PATH", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "GIT_SSL_CAINFO", "https_proxy", "no_proxy")
_FOUND_BY_WORDS: tuple[tuple["GitFailure", tuple[str, ...]], ...] = (
    ("no_commit", ("couldn't find remote ref", "not our ref", "no such remote ref")),
    ("redirected", ("redirect", "returned error: 30")),
    ("too_large", ("file too large", "file size limit", "signal 25", "out of memory",
                   "malloc failed", "invalid index-pack output")),
    ("no_repository", (
        "not found", "does not exist", "not appear to be a git repository",
        "authentication failed", "could not read username", "permission denied",
        "repository access denied", "returned error: 401", "returned error: 403",
    )),
)  # fmt: skip

GitFailure = Literal[
    "no_git", "no_repository", "no_commit", "redirected", "too_large", "timed_out", "away"
]
"""`no_repository` also stands for one that may not be read: hosts do not distinguish them."""


class GitError(CarawayError):
    """The command failed, or took too long."""

    def __init__(self, output: str, failure: GitFailure | None = None) -> None:
        """Take what the command said. It is for rules, and not for users."""
        super().__init__("git failed")
        self.output = output
        self.failure: GitFailure = failure or _failure(output.lower())


def _failure(said: str) -> GitFailure:
    found = (kind for kind, words in _FOUND_BY_WORDS if any(word in said for word in words))
    return next(found, "away")


@dataclass(frozen=True, slots=True)
class Checkout:
    """A commit of a remote repository, in a folder of its own."""

    commit_sha: str
    commit_message: str
    _commands: "_Commands" = field(repr=False)

    async def read(self, path: str, most_bytes: int) -> bytes | None:
        """Return a file of the commit, or None if there is none of this path.

        Raises:
            GitError: it cannot be read.
            ValueError: it is too large, a symbolic link or a submodule.
        """
        listed = await self._commands.run_git(
            "--literal-pathspecs", "ls-tree", "-z", "--full-tree", "--", self.commit_sha, path
        )
        mode, kind, name = [*listed.partition(b"\t")[0].decode().split(), "", "", ""][:3]
        if mode == "120000":
            raise ValueError("is a symbolic link, which is not followed")
        if kind == "commit":
            raise ValueError("is a submodule, which is not read")
        if kind != "blob":
            return None
        if int(await self._commands.run_git("cat-file", "-s", name)) > most_bytes:
            raise ValueError(f"has more than {most_bytes} bytes")
        return await self._commands.run_git("cat-file", "blob", name)


async def find_branch(url: str, branch: str | None) -> str | None:
    """Return the name of a branch, or that of the default branch; None if there is none.

    Raises:
        GitError: the repository cannot be read.
    """
    with _commands(url, None) as commands:
        if branch is not None:
            git = await commands.run_git("ls-remote", "--heads", "--", url, f"refs/heads/{branch}")
            names = {line.partition(b"\t")[2].decode() for line in git.splitlines()}
            return branch if f"refs/heads/{branch}" in names else None
        git = await commands.run_git("ls-remote", "--symref", "--", url, "HEAD")
    for line in git.decode(errors="replace").splitlines():
        if line.startswith("ref: refs/heads/"):
            return line.split("\t")[0].removeprefix("ref: refs/heads/")
    return None


@contextlib.asynccontextmanager
async def fetched(url: str, ref: str, token: str | None = None) -> AsyncIterator[Checkout]:
    """Fetch one commit: that of a branch (`refs/heads/...`), or one by its hash.

    Raises:
        GitError: it cannot be fetched.
    """
    with _commands(url, token) as commands:
        await commands.run_git("init", "--quiet", "--bare", ".")
        await commands.run_git(
            "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules",
            "--filter=blob:none", "--", "origin", ref,
        )  # fmt: skip
        git = await commands.run_git("rev-parse", "--verify", "FETCH_HEAD^{commit}")
        sha = git.decode().strip()
        message = (await commands.run_git("log", "-1", "--format=%s", sha)).decode(errors="replace")
        yield Checkout(sha, message.strip()[:500], commands)


@contextlib.contextmanager
def _commands(url: str, token: str | None) -> Iterator["_Commands"]:
    if shutil.which("git") is None:
        raise GitError("there is no command git", "no_git")
    with tempfile.TemporaryDirectory(prefix="caraway-git-") as name:
        yield _Commands(Path(name), url, token)


@dataclass(frozen=True, slots=True)
class _Commands:
    """Runs the command in a folder, for one repository."""

    folder: Path
    url: str
    token: str | None = field(repr=False)

    async def run_git(self, *arguments: str) -> bytes:
        scheme = self.url.partition("://")[0]
        chosen = (*_SETTINGS, f"protocol.{scheme}.allow=always", f"remote.origin.url={self.url}")
        settings = [part for each in chosen for part in ("-c", each)]
        # Not every system has a limit of memory.
        memory = f"{{ ulimit -v {_MOST_MEMORY_KIB} 2>/dev/null || :; }}"
        limits = f"ulimit -f {_MOST_FILE_BLOCKS} && {memory}"
        # Its output goes to files, whose size the system limits.
        with (
            tempfile.TemporaryFile(dir=self.folder) as output,
            tempfile.TemporaryFile(dir=self.folder) as said,
        ):
            try:
                process = await asyncio.create_subprocess_exec(
                    "/bin/sh", "-c", f'{limits} && exec git "$@"', "git", *settings, *arguments,
                    cwd=self.folder, env=self._environment(), stdin=asyncio.subprocess.DEVNULL,
                    stdout=output, stderr=said, start_new_session=True,
                )  # fmt: skip
            except OSError as exc:
                raise GitError(str(exc), "away") from exc
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    code = await process.wait()
            except TimeoutError as exc:
                raise GitError(f"timed out after {TIMEOUT_S:g} s", "timed_out") from exc
            finally:
                if process.returncode is None:
                    # Its helpers (ssh, git-remote-https) are of the same group.
                    os.killpg(process.pid, signal.SIGKILL)
                    await process.wait()
            if code == -signal.SIGXFSZ:
                raise GitError("a file is too large", "too_large")
            if code:
                raise GitError(_read(said).decode(errors="replace"))
            return _read(output)

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return {
            **kept,
            **self._signed(),
            "HOME": str(self.folder),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "true",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=10",
        }

    def _signed(self) -> dict[str, str]:
        """Return the token as a setting. All users of a machine see arguments of commands."""
        if self.token is None:
            return {}
        credentials = base64.b64encode(f"x-access-token:{self.token}".encode()).decode()
        return {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.{self.url}.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {credentials}",
        }


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(_MOST_OUTPUT)
