"""The reader of git repositories: its limits, and the links that it does not follow."""

import asyncio
import contextlib
import os
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from caraway_core.packages import git
from caraway_core.packages.git import GitError, GitFailure
from tests.kit import certificates, git_repositories
from tests.kit.git_repositories import Repository

MANIFEST = "kind: Spicepod\n"


async def read(url: str, ref: str, path: str = "caraway.yaml") -> bytes | None:
    async with git.fetched(url, ref) as checkout:
        return await checkout.read(path, 1000)


async def test_contents_that_are_not_read_do_not_count(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "acme" / "shop.git")
    files: dict[str, str | bytes] = {"caraway.yaml": MANIFEST, "zeros": bytes(40 * 1024 * 1024)}
    sha = repository.commit({**files, "noise": os.urandom(200_000)})
    with git_repositories.serving(tmp_path) as server:
        assert await read(f"{server.url}/acme/shop.git", sha) == MANIFEST.encode()
        assert server.sent_bytes < 50_000
    # This server sends everything; well compressed contents are not unpacked.
    assert await read(repository.url, sha) == MANIFEST.encode()


@pytest.mark.parametrize(("limit", "value"), [("FILE_BLOCKS", 64), ("MEMORY_KIB", 8 * 1024)])
async def test_what_passes_a_limit_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    repository = Repository(tmp_path / "data")
    sha = repository.commit({"caraway.yaml": MANIFEST, "noise": os.urandom(200_000)})
    monkeypatch.setattr(git, f"_MOST_{limit}", value)
    with pytest.raises(GitError) as failed:
        await read(repository.url, sha)
    assert limit != "FILE_BLOCKS" or failed.value.failure == "too_large", failed.value.output


async def test_a_file_that_is_larger_than_asked_for_is_refused(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "data")
    sha = repository.commit({"a": "-" * 1001, "b": "-" * 1000})
    with pytest.raises(ValueError, match="has more than 1000 bytes"):
        await read(repository.url, sha, "a")
    assert await read(repository.url, sha, "b") == b"-" * 1000
    assert await read(repository.url, sha, "*") is None


@pytest.mark.parametrize(
    ("said", "failure"),
    [
        ("fatal: couldn't find remote ref x", "no_commit"),
        ("fatal: remote error: upload-pack: not our ref 0000", "no_commit"),
        ("remote: Repository not found.\nfatal: repository 'x' not found", "no_repository"),
        ("fatal: Authentication failed for 'https://x/'", "no_repository"),
        ("fatal: unable to access 'https://x/': URL returned error: 302", "redirected"),
        ("fatal: unable to update url base from redirection", "redirected"),
        ("fatal: write error: File too large", "too_large"),
        ("fatal: unable to access 'https://x/': Could not resolve host: x", "away"),
        ("fatal: unable to access 'https://x/': The requested URL returned error: 503", "away"),
    ],
)  # fmt: skip
def test_what_the_command_says_becomes_a_failure(said: str, failure: GitFailure) -> None:
    assert GitError(said).failure == failure
    assert said not in str(GitError(said))


async def test_a_fetch_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "slow").mkdir()
    with git_repositories.serving(tmp_path) as server:
        fetching = asyncio.create_task(read(f"{server.url}/slow/shop.git", "0" * 40))
        await asyncio.to_thread(server.asked_slowly.wait)
        fetching.cancel()
        await asyncio.wait((fetching,))
        assert fetching.cancelled()
        assert not [each for each in _commands() if server.url.encode() in each]


def _commands() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes()


async def test_a_redirect_of_a_repository_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    certificates.make_certificate(certificate, key)
    monkeypatch.setenv("GIT_SSL_CAINFO", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        asked.append(request.split()[1])
        writer.write(
            b"HTTP/1.1 302 Found\r\nlocation: /inside/info/refs?service=git-upload-pack\r\n"
            b"content-length: 0\r\nconnection: close\r\n\r\n"
        )
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(GitError) as failed:
            await git.find_branch(f"https://127.0.0.1:{port}/team/shop", None)
    assert failed.value.failure == "redirected", failed.value.output
    assert asked == [b"/team/shop/info/refs?service=git-upload-pack"]
