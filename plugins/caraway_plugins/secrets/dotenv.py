"""Secrets from a file of `NAME=value` lines."""

import re
from collections.abc import Mapping
from pathlib import Path

from caraway_core.errors import CarawayError

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][\w.-]*)\s*=(.*)", re.DOTALL)
_DOUBLE_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?', re.DOTALL)
_SINGLE_QUOTED = re.compile(r"'([^']*)'\s*(?:#.*)?", re.DOTALL)
# As in a shell, a `#` within a word does not begin a comment: passwords may begin with one.
_COMMENT = re.compile(r"\s#.*", re.DOTALL)
_LINE_END = re.compile(r"\r\n|\r|\n")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class DotEnv:
    """Secrets of the file at `params.path`, which is read once, when the store is opened."""

    def __init__(
        self, params: Mapping[str, str], base_dir: Path, environ: Mapping[str, str]
    ) -> None:
        path = base_dir / params.get("path", ".env")
        if not path.is_file():
            raise CarawayError(
                f"secret store 'dotenv': the file '{path}' does not exist; create it"
            )
        self._secrets = read(path)

    def get(self, name: str) -> str | None:
        """Return the value with exactly this name, or None."""
        return self._secrets.get(name)


def read(path: Path) -> Mapping[str, str]:
    """Return the values of a file by name; the last line with a name wins.

    Raises:
        CarawayError: the file cannot be read, or a line is not `NAME=value`.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        reason = getattr(exc, "strerror", None) or "it is not UTF-8 text"
        # Not chained: the message of a decoding error quotes bytes of the file.
        raise CarawayError(f"the secrets in '{path}' cannot be read: {reason}") from None
    secrets = {}
    for number, line in enumerate(_LINE_END.split(text), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        match = _LINE.fullmatch(stripped)
        value = _value(match[2]) if match else None
        if match is None or value is None:
            raise CarawayError(f"{path}:{number}: the line is not NAME=value; correct it")
        secrets[match[1]] = value
    return secrets


def _value(text: str) -> str | None:
    written = text.strip()
    if written.startswith('"'):
        match = _DOUBLE_QUOTED.fullmatch(written)
        return match and re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), match[1])
    if written.startswith("'"):
        match = _SINGLE_QUOTED.fullmatch(written)
        return match and match[1]
    return _COMMENT.sub("", text).strip()
