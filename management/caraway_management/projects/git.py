"""Reads files of remote repositories by the command `git`, in a folder that is removed again.

Nothing is checked out, and no hook, filter, submodule or configuration of a user is read, so that
what a repository holds runs nothing. Time, output and files are bounded.
"""

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from caraway_core.errors import CarawayError

TIMEOUT_S = 60.0
_MOST_OUTPUT = 2 * 1024 * 1024
_MOST_FILE_BLOCKS = 512 * 1024
"""Blocks of 512 bytes: no file that git writes is larger."""
_SETTINGS = (
    "core.hooksPath=/dev/null", "protocol.allow=never", "protocol.https.allow=always",
    "protocol.ssh.allow=always", "protocol.file.allow=always", "http.followRedirects=false",
    "credential.helper=", "gc.auto=0", "maintenance.auto=false",
)  # fmt: skip
_KEPT = ("PATH", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "GIT_SSL_CAINFO", "https_proxy", "no_proxy")


class GitError(CarawayError):
    """The command failed, or took too long."""

    def __init__(self, output: str) -> None:
        """Take what the command said. It is for rules, and not for users."""
        super().__init__("git failed")
        self.output = output


@dataclass(frozen=True, slots=True)
class Checkout:
    """A commit of a remote repository, in a folder of its own."""

    folder: Path
    commit_sha: str
    commit_message: str

    async def read(self, path: str, most_bytes: int) -> str | None:
        """Return the text of a file of the commit, or None if there is none.

        Raises:
            GitError: it cannot be read.
            ValueError: it is too large, or no text.
        """
        name = f"{self.commit_sha}:{path}"
        try:
            kind = await _git(self.folder, "cat-file", "-t", name)
        except GitError:
            return None
        if kind.strip() != b"blob":
            return None
        if int(await _git(self.folder, "cat-file", "-s", name)) > most_bytes:
            raise ValueError(f"has more than {most_bytes} bytes")
        try:
            return (await _git(self.folder, "cat-file", "blob", name)).decode()
        except UnicodeDecodeError as exc:
            raise ValueError("is not UTF-8") from exc


async def find_branch(url: str, branch: str | None) -> str | None:
    """Return the name of a branch, or that of the default branch; None if there is none.

    Raises:
        GitError: the repository cannot be read.
    """
    with _folder() as folder:
        if branch is not None:
            found = await _git(folder, "ls-remote", "--heads", "--", url, f"refs/heads/{branch}")
            names = {line.partition(b"\t")[2].decode() for line in found.splitlines()}
            return branch if f"refs/heads/{branch}" in names else None
        found = await _git(folder, "ls-remote", "--symref", "--", url, "HEAD")
    for line in found.decode(errors="replace").splitlines():
        if line.startswith("ref: refs/heads/"):
            return line.split("\t")[0].removeprefix("ref: refs/heads/")
    return None


@contextlib.asynccontextmanager
async def fetched(url: str, ref: str) -> AsyncIterator[Checkout]:
    """Fetch one commit: that of a branch (`refs/heads/...`), or one by its hash.

    Raises:
        GitError: it cannot be fetched.
    """
    with _folder() as folder:
        await _git(folder, "init", "--quiet", "--bare", ".")
        await _git(
            folder, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules",
            "--", url, ref,
        )  # fmt: skip
        sha = (await _git(folder, "rev-parse", "--verify", "FETCH_HEAD^{commit}")).decode().strip()
        message = (await _git(folder, "log", "-1", "--format=%s", sha)).decode(errors="replace")
        yield Checkout(folder, sha, message.strip()[:500])


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="caraway-git-") as name:
        yield Path(name)


async def _git(folder: Path, *arguments: str) -> bytes:
    settings = [part for each in _SETTINGS for part in ("-c", each)]
    bounded = f'ulimit -f {_MOST_FILE_BLOCKS}; exec git "$@"'
    # What it writes goes to files, whose size the system limits.
    with tempfile.TemporaryFile(dir=folder) as output, tempfile.TemporaryFile(dir=folder) as said:
        try:
            process = await asyncio.create_subprocess_exec(
                "/bin/sh", "-c", bounded, "git", *settings, *arguments,
                cwd=folder, env=_environment(folder), stdin=asyncio.subprocess.DEVNULL,
                stdout=output, stderr=said, start_new_session=True,
            )  # fmt: skip
        except OSError as exc:
            raise GitError(str(exc)) from exc
        try:
            code = await asyncio.wait_for(process.wait(), TIMEOUT_S)
        except TimeoutError as exc:
            raise GitError(f"timed out after {TIMEOUT_S:g} s") from exc
        finally:
            if process.returncode is None:
                # Its helpers (ssh, git-remote-https) are of the same group.
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if code:
            raise GitError(_read(said).decode(errors="replace"))
        return _read(output)


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(_MOST_OUTPUT)


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {
        **kept,
        "HOME": str(folder),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=10",
    }
