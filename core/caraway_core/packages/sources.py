"""The text that names a manifest in a git repository: `git:{org}/{repo}/{sha}/{path}`."""

import re
from dataclasses import dataclass

from caraway_core.errors import InvalidRequestError
from caraway_core.manifest.texts.places import GIT_PREFIXES
from caraway_core.packages import paths

FORM = "git:{org}/{repo}/{sha}/{path of the manifest}"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_TOKEN = re.compile(r"[!-~]{1,1000}")
_MOST_TEXT = 2_000


@dataclass(frozen=True, slots=True)
class PackageSource:
    """A manifest, or the folder of one, in a commit of a repository."""

    org: str
    repository: str
    commit_sha: str
    path: str

    def url(self, git_url: str) -> str:
        """Return the URL of the repository on a host."""
        return f"{git_url.rstrip('/')}/{self.org}/{self.repository.removesuffix('.git')}.git"

    @property
    def commit(self) -> str:
        """The text that names the commit; packages have its files in a folder of this name."""
        return f"{self.org}/{self.repository}/{self.commit_sha}"


def is_source(text: str) -> bool:
    """Report whether a text begins as a source does."""
    return text.startswith(GIT_PREFIXES)


def parse(text: str, subject: str = "'from'") -> PackageSource:
    """Read the text of a source.

    Raises:
        InvalidRequestError: it is none; `subject` is what the message begins with.
    """
    prefix = next((each for each in GIT_PREFIXES if text.startswith(each)), None)
    if prefix is None or len(text) > _MOST_TEXT:
        raise InvalidRequestError(f"{subject} must have the form {FORM}")
    parts = text.removeprefix(prefix).split("/", 3)
    if len(parts) < 4 or not parts[3].strip("/"):
        raise InvalidRequestError(f"{subject} must have four parts: {FORM}")
    org, repository, sha, path = parts
    for kind, name in (("organization", org), ("repository", repository)):
        if not _NAME.fullmatch(name):
            raise InvalidRequestError(f"{subject}: the {kind} has characters that names have not")
    if not _COMMIT.fullmatch(sha):
        raise InvalidRequestError(
            f"{subject}: the commit must be its whole hash, of 40 or 64 small hexadecimal digits"
        )
    return PackageSource(org, repository, sha, paths.inside("", path, f"{subject}: the path"))


def checked_token(text: str) -> str:
    """Return a token, which a header can hold.

    Raises:
        InvalidRequestError: it cannot be one. The message has no part of it.
    """
    if not _TOKEN.fullmatch(text):
        raise InvalidRequestError(
            "'params.git_token' must be a token: 1 to 1,000 printable characters without spaces"
        )
    return text
