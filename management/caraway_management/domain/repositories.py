"""Rules of the repositories that projects are connected to."""

import posixpath
import re
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from caraway_management.domain import refusals
from caraway_management.domain.refusals import RefusedError

SCHEMES = ("https", "ssh", "file")
_MOST_URL = 1_000
_URL = re.compile(r"[a-z]+://[A-Za-z0-9._~:/@+%-]+")
_FOLDER = re.compile(r"[A-Za-z0-9._@+-]+(/[A-Za-z0-9._@+-]+)*")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def check_url(text: str, allowed: Sequence[str]) -> str:
    """Return the URL of a repository. It begins with one of the `allowed` ones.

    Raises:
        RefusedError: it cannot be used, or the installation does not allow it.
    """
    url = text.removeprefix("git:")
    parts = urlsplit(url) if len(url) <= _MOST_URL and _URL.fullmatch(url) else None
    # A password in a URL would be shown to all members.
    if parts is None or parts.scheme not in SCHEMES or parts.password or _climbs(parts.path):
        raise refused(
            "invalid_repository", "must be the URL of a git repository, without a password"
        )
    if parts.scheme == "https" and parts.username:
        raise refused("invalid_repository", "must be a URL without a user")
    if not any(url.startswith(each if each.endswith("/") else f"{each}/") for each in allowed):
        places = ", ".join(allowed) or "none"
        raise refused(
            "github_not_connected",
            f"is not in a place that this installation connects to ({places}); ask its "
            "administrator to add it to `git`",
        )
    return url


def check_root(text: str) -> str:
    """Return the folder of the manifest in a repository; '' is the top.

    Raises:
        RefusedError: it leaves the repository, or is not a path.
    """
    path = text.strip("/") if text not in (".", "./") else ""
    if path and (len(path) > 255 or not _FOLDER.fullmatch(path) or _climbs(path)):
        raise refused("invalid_root_directory", "must be the path of a folder in the repository")
    return posixpath.normpath(path) if path else ""


def check_commit(text: str) -> str:
    """Return the name of a commit.

    Raises:
        RefusedError: it is not a whole hash.
    """
    if not _COMMIT.fullmatch(text):
        raise refusals.invalid_field("commit_sha", "must be a commit's hash of 40 or 64 digits")
    return text


def refused(code: str, message: str, status: int = 400) -> RefusedError:
    """Return the refusal of a repository, by the field that is wrong."""
    field = {
        "invalid_root_directory": "root_directory", "spicepod_missing": "root_directory",
        "root_directory_conflict": "root_directory", "branch_not_found": "production_branch",
    }.get(code, "repository")  # fmt: skip
    return RefusedError(status, f"{field}: {message}", code, fields={field: [message]})


def _climbs(path: str) -> bool:
    # git decodes `%2e`, and a server may decode what that gives once more.
    while (decoded := unquote(path)) != path:
        path = decoded
    parts = path.split("/")
    return ".." in parts or "." in parts or any(part.startswith("-") for part in parts)
