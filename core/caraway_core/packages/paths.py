"""Paths in a package: relative, in its folder, and good names on each system."""

import posixpath
import re

from caraway_core.errors import InvalidRequestError

_MOST_PATH = 500
_PART = re.compile(r"[^\x00-\x1f\x7f\\:*?\"<>|]{1,200}")


def inside(folder: str, text: str, subject: str) -> str:
    """Return the path that a file in a folder names, below the top. It may not leave the top.

    Raises:
        InvalidRequestError: it is no such path; `subject` is what the message begins with.
    """
    path = posixpath.normpath(posixpath.join(folder, text)) if not text.startswith("/") else ""
    parts = path.split("/")
    if path in ("", ".") or parts[0] == "..":
        raise InvalidRequestError(f"{subject} must name a file in the folder of the package")
    if len(path) > _MOST_PATH or not all(_is_good(part) for part in parts):
        raise InvalidRequestError(f"{subject} has characters that paths of packages have not")
    return path


def _is_good(part: str) -> bool:
    return _PART.fullmatch(part) is not None and part[0] != "-" and part[-1] not in " ."
