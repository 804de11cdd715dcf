"""Result locations of a scheduler: a folder, a bucket prefix, or a chunk store."""

import re
from dataclasses import dataclass
from pathlib import Path

from caraway_core.loading import registry
from caraway_core.manifest.texts import places
from caraway_core.settings import MOST_PORT

FOLDER = "file"

STORE = "caraway"
_ADDRESS = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
_BUCKET = re.compile(r"(?:[A-Za-z0-9._$-]+@)?[A-Za-z0-9._-]+")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class StateLocation:
    """A scheme of `registry.RESULT_PLACES`, and what stands behind its slashes.

    Of a bucket that is `bucket/prefix`, of a `caraway store` `host:port/prefix`, of a folder its
    path, which may be relative.
    """

    scheme: str
    path: str


def split(text: str) -> StateLocation:
    """Read a URL or a plain path.

    Raises:
        ValueError: it is neither; the message holds no credentials.
    """
    match = _URL.fullmatch(text)
    if match is None:
        return StateLocation(FOLDER, text)
    scheme, path = match[1].lower(), match[2]
    if scheme not in registry.RESULT_PLACES:
        raise ValueError(registry.RESULT_PLACES.unknown(scheme))
    if scheme == FOLDER:
        return StateLocation(FOLDER, _folder(path))
    return StateLocation(scheme, _bucket(scheme, path))


def absolute(text: str, base_dir: Path) -> str:
    """Return the location as a URL of a bucket, or as the absolute path of a folder."""
    location = split(text)
    if location.scheme != FOLDER:
        return f"{location.scheme}://{location.path}"
    folder = Path(location.path).expanduser()
    return str(places.sibling(base_dir.absolute(), str(folder)))


def _folder(path: str) -> str:
    slashes = len(path) - len(path.lstrip("/"))
    if not path.strip("/"):
        raise ValueError("names no folder; write for example file:///var/lib/caraway/results")
    if slashes == 2:
        host = path.strip("/").partition("/")[0]
        raise ValueError(
            f"'{host}' stands where a host would; write file:/// before an absolute path"
        )
    return "/" + path.lstrip("/") if slashes else path


def _is_address(text: str) -> bool:
    match = _ADDRESS.fullmatch(text)
    return match is not None and 0 < int(text.rpartition(":")[2]) <= MOST_PORT


def _bucket(scheme: str, path: str) -> str:
    is_store = scheme == STORE
    bucket, _, prefix = path.removeprefix("//").strip("/").partition("/")
    # The container stands before the '@' of abfss; elsewhere there could only be a password.
    if "@" in bucket and scheme != "abfss":
        raise ValueError("holds an '@' in the bucket; credentials belong into 'params'")
    if not path.startswith("//") or path.startswith("///") or not bucket:
        form = "caraway://HOST:PORT/PREFIX" if is_store else f"{scheme}://bucket/prefix"
        raise ValueError(f"names no {'store' if is_store else 'bucket'}; write {form}")
    if is_store and not _is_address(bucket):
        raise ValueError(f"'{bucket}' is no HOST:PORT; write caraway://HOST:PORT/PREFIX")
    if not is_store and not _BUCKET.fullmatch(bucket):
        raise ValueError(
            f"'{bucket}' is no name of a bucket; it has letters, digits, '.', '_', '-'"
        )
    if not prefix.isprintable():
        raise ValueError("holds characters that cannot be printed")
    if prefix and not all(step.strip(".") for step in prefix.split("/")):
        raise ValueError(f"'{prefix}' is no plain prefix; write names with '/' between them")
    return f"{bucket}/{prefix}" if prefix else bucket
