"""The host of git repositories: what is allowed, and the default."""

import re
from urllib.parse import urlsplit

DEFAULT_GIT_URL = "https://github.com"
_BASE = re.compile(r"(https?|file)://[A-Za-z0-9._~:/\[\]%-]+")


def checked_git_url(text: str) -> str:
    """Return the URL of a host, below which repositories are.

    Raises:
        ValueError: it is none, or has a user or password.
    """
    if not _BASE.fullmatch(text) or ".." in urlsplit(text).path.split("/"):
        raise ValueError(
            "must be a URL with https, http or file, without a user, a password or a query"
        )
    return text
