"""Lists the files of a path: one file, a folder, or the matches of a pattern."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_plugins.sources.storage import FoundFile, Storage

_MAGIC = re.compile(r"[*?\[]")
# All files with one suffix below a folder; the engine can list them itself.
_WHOLE_FOLDER = re.compile(r"^(?P<folder>(?:[^*?\[]*/)?)\*\*/\*(?P<suffix>(?:\.\w+)*)$")


@dataclass(frozen=True, slots=True)
class FileListing:
    """The files of a path, below `root`.

    `suffix` is the suffix that the pattern requires. `is_folder` means that the path stands for
    every file below the root; `hidden` has the files that were skipped. `columns` are those of a
    listing that may have no files.
    """

    root: str
    files: tuple[FoundFile, ...]
    hidden: tuple[FoundFile, ...]
    is_folder: bool
    suffix: str = ""
    columns: pa.Schema | None = None

    def fingerprint(self) -> str:
        """Return a text that changes when a file is added, removed or changed."""
        digest = hashlib.sha256(b"" if self.columns is None else self.columns.serialize())
        for file in self.files:
            digest.update(f"{file.path}\0{file.size_bytes}\0{file.stamp}\0".encode())
        return digest.hexdigest()


def look(storage: Storage, path: str) -> FileListing:
    """List the files of a path.

    Raises:
        DatasetError: there are no files, or access is denied.
    """
    if "\0" in path or not _is_text(path):
        raise DatasetError("invalid", f"the path {path!r} cannot be the path of a file")
    single = None if path.endswith("/") or not path else storage.find(path)
    if single is not None:
        return FileListing(path.rpartition("/")[0] + "/", (single,), (), is_folder=False)
    if whole := _WHOLE_FOLDER.match(path):
        return _folder(storage, whole["folder"], whole["suffix"], path)
    if _MAGIC.search(path):
        return _pattern(storage, path)
    return _folder(storage, path if path.endswith("/") or not path else path + "/", "", path)


def _folder(storage: Storage, root: str, suffix: str, path: str) -> FileListing:
    files = [each for each in _readable(storage, root) if each.path.endswith(suffix)]
    shown = [each for each in files if not _is_hidden(each.path[len(root) :])]
    if not shown:
        where = storage.title(path)
        raise DatasetError("not_found", f"'{where}' is neither a file nor a folder with files")
    hidden = [each for each in files if _is_hidden(each.path[len(root) :])]
    return FileListing(root, _sorted(shown), _sorted(hidden), is_folder=True, suffix=suffix)


def _readable(storage: Storage, root: str) -> Iterator[FoundFile]:
    for each in storage.listing(root):
        if not _is_text(each.path):
            raise DatasetError(
                "invalid",
                f"the name {each.path[len(root) :]!r} below '{storage.title(root)}' is not UTF-8; "
                "rename the file",
            )
        yield each


def _pattern(storage: Storage, path: str) -> FileListing:
    fixed = _MAGIC.split(path, maxsplit=1)[0]
    root = fixed[: fixed.rfind("/") + 1]
    try:
        matches = re.compile(glob_regex(path[len(root) :])).fullmatch
    except re.error as exc:
        raise DatasetError(
            "invalid", f"the pattern '{path[len(root) :]}' has a range that is empty"
        ) from exc
    shows_hidden = any(part[:1] in "._" and part for part in path[len(root) :].split("/"))
    files = [
        each
        for each in _readable(storage, root)
        if matches(each.path[len(root) :])
        and (shows_hidden or not _is_hidden(each.path[len(root) :]))
    ]
    if not files:
        raise DatasetError("not_found", f"no file matches '{storage.title(path)}'")
    return FileListing(root, _sorted(files), (), is_folder=False)


def glob_regex(pattern: str) -> str:
    """Translate a glob to a regular expression: `**` crosses folders, `*` and `?` do not.

    Raises:
        DatasetError: a bracket is not closed, or is empty.
    """
    regex = ""
    rest = pattern
    while rest:
        token = re.match(r"\*\*/|\*\*|\*|\?|\[[!^]?\]?[^\]]*\]|.", rest, re.DOTALL)
        text = token.group() if token else rest
        regex += _GLOB_TOKENS.get(text) or _literal(text, pattern)
        rest = rest[len(text) :]
    return regex


_GLOB_TOKENS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _literal(text: str, pattern: str) -> str:
    if text == "[":
        raise DatasetError("invalid", f"the pattern '{pattern}' has a '[' without its ']'")
    if len(text) == 1:
        return re.escape(text)
    body = text[1:-1]
    if not body:
        raise DatasetError("invalid", f"the pattern '{pattern}' has an empty '[]'")
    sign = "^" if len(body) > 1 and body[0] in "!^" else ""
    # No class crosses folders, neither `[!a]` nor a range around "/".
    return f"(?!/)[{sign}{_items(body[len(sign) :])}]"


def _items(body: str) -> str:
    """Write the characters and ranges of a class; each "-" that makes no range is a character."""
    items = ""
    while body:
        length = 3 if body[1:2] == "-" and len(body) > 2 else 1
        items += "-".join(re.escape(end) for end in dict.fromkeys(body[:length:2]))
        body = body[length:]
    return items


def _is_text(path: str) -> bool:
    """Return whether a path can be written as UTF-8; other names have a stand-in for each byte."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_hidden(relative: str) -> bool:
    return any(part[0] in "._" and "=" not in part for part in relative.split("/") if part)


def _sorted(files: Iterable[FoundFile]) -> tuple[FoundFile, ...]:
    return tuple(sorted(files, key=lambda found: found.path))
