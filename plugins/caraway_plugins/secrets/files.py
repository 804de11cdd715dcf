"""Secrets from a folder with one file per secret, as Kubernetes mounts them."""

from collections.abc import Mapping
from pathlib import Path

from caraway_core.errors import CarawayError

_MAX_SECRET_BYTES = 1024 * 1024
_LONGEST_SHOWN = 100


class Files:
    """Secrets in the folder at `params.path`; files are read at each access, to see rotations."""

    def __init__(
        self, params: Mapping[str, str], base_dir: Path, environ: Mapping[str, str]
    ) -> None:
        if not params.get("path"):
            raise CarawayError("secret store 'file' needs a folder; write 'from: file:/path'")
        # `file:///run/secrets` and `file:/run/secrets` mean the same folder.
        self._folder = base_dir / params["path"].removeprefix("//")
        if not self._folder.is_dir():
            raise CarawayError(f"secret store 'file': the folder '{self._folder}' does not exist")

    def get(self, name: str) -> str | None:
        """Return the content of the file with this name, without a trailing newline.

        Raises:
            CarawayError: the name is not a file name, or the file cannot be read.
        """
        if name in ("", ".") or ".." in name or any(mark in name for mark in "/\\\0"):
            raise CarawayError(f"'{name}' is not a valid secret name; it must be a file name")
        path = self._folder / name
        try:
            is_there = path.is_file()
        except OSError as exc:  # The name is too long, or the folder is not ours to search.
            told = name[:_LONGEST_SHOWN]
            raise CarawayError(f"the secret '{told}' cannot be read: {exc.strerror}") from None
        return _read(path) if is_there else None


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_SECRET_BYTES + 1)
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        reason = getattr(exc, "strerror", None) or "it is not UTF-8 text"
        # Not chained: the message of a decoding error quotes bytes of the secret.
        raise CarawayError(f"the secret in '{path}' cannot be read: {reason}") from None
    if len(content) > _MAX_SECRET_BYTES:
        raise CarawayError(f"the secret in '{path}' is larger than 1 MiB")
    return text.removesuffix("\n").removesuffix("\r")
