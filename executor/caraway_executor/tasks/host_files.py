"""Copies of files that are on the schedulers' hosts, for tables that read them."""

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from threading import Lock

import pyarrow as pa

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import ExecutionError
from caraway_core.ids import CatalogVersion, TableName
from caraway_core.process import disks
from caraway_core.protocols.fleet import OwnFile, TableCatalog
from caraway_core.tables import TableSpec

_DIGEST = re.compile(r"[0-9a-f]{64}")
_ARRIVING = ".arriving-"
_EXPECTED_S = 600.0
"""The time for which a received file is kept for a catalog that follows."""


@dataclass(frozen=True, slots=True)
class Localized:
    """The tables of a catalog as this host can read them, and those that it cannot."""

    tables: Mapping[TableName, TableSpec]
    failed: Mapping[TableName, str]


class HostFiles:
    """Keeps copies of files by content hash in a directory; without one it keeps none.

    A file that is visible on this host is read in place. `has` returns whether a path exists.
    """

    def __init__(
        self,
        folder: Path | None,
        clock: SecondsClock,
        has: Callable[[str], bool] = os.path.isfile,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._has = has
        self._expected: dict[str, float] = {}
        self._lock = Lock()
        # A process that was killed while receiving a file left a partial one.
        for part in folder.glob(f"{_ARRIVING}*") if folder is not None else ():
            part.unlink(missing_ok=True)
        self._used: dict[str, dict[CatalogVersion, frozenset[str]]] = {}

    def missing(self, files: Sequence[OwnFile]) -> tuple[OwnFile, ...]:
        """Return the files that must be sent before a catalog that uses them."""
        if self._folder is None:
            return ()
        sendable = [file for file in files if file.digest]
        with self._lock:
            self._expected.update((_name(file), self._clock()) for file in sendable)
            return tuple(file for file in sendable if self._place(file) is None)

    def keep(self, file: OwnFile, content: pa.Buffer) -> None:
        """Keep a copy. It is written completely or not at all.

        Raises:
            ExecutionError: the content does not match, or it cannot be written.
        """
        if self._folder is None or hashlib.sha256(content).hexdigest() != file.digest:
            raise ExecutionError(f"the copy of '{file.path}' does not match the scheduler's file")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            _write(self._folder / _name(file), content)
        except OSError as exc:
            raise disks.failure("the executor cannot keep a copy of a file", exc) from exc

    def localized(self, catalog: TableCatalog) -> Localized:
        """Make the tables of a catalog read the copies of files that this host does not have."""
        places = {file.path: self._place(file) for file in catalog.files}
        tables: dict[TableName, TableSpec] = {}
        failed: dict[TableName, str] = {}
        for name, spec in catalog.tables.items():
            paths = _paths(spec) & places.keys()
            gone = [path for path in paths if places[path] is None]
            if gone:
                failed[name] = _unreadable(next(f for f in catalog.files if f.path in gone))
            else:
                tables[name] = spec.moved({path: places[path] or path for path in paths})
        with self._lock:
            self._note(catalog)
            self._remove_unused()
        return Localized(tables, failed)

    def keep_only(self, origin: str, versions: Collection[CatalogVersion]) -> None:
        """Remove copies that only other catalog versions of a scheduler use."""
        with self._lock:
            used = self._used.get(origin, {})
            kept = {version: names for version, names in used.items() if version in versions}
            if len(kept) < len(used):
                self._used[origin] = kept
                self._remove_unused()

    def forget(self, origin: str) -> None:
        """Stop using the files of a scheduler."""
        with self._lock:
            self._used.pop(origin, None)

    def _place(self, file: OwnFile) -> str | None:
        if self._has(file.path) and os.path.getsize(file.path) == file.size_bytes:
            return file.path
        if self._folder is None or not file.digest:
            return None
        copy = self._folder / _name(file)
        return str(copy) if copy.is_file() else None

    def _note(self, catalog: TableCatalog) -> None:
        names = frozenset(_name(file) for file in catalog.files if file.digest)
        self._used.setdefault(catalog.origin, {})[catalog.version] = names

    def _remove_unused(self) -> None:
        oldest_s = self._clock() - _EXPECTED_S
        self._expected = {name: at for name, at in self._expected.items() if at >= oldest_s}
        wanted = self._expected.keys() | set().union(
            *chain.from_iterable(each.values() for each in self._used.values())
        )
        if self._folder is None or not self._folder.is_dir():
            return
        for path in self._folder.iterdir():
            if path.name not in wanted and _DIGEST.match(path.name):
                path.unlink(missing_ok=True)


def _name(file: OwnFile) -> str:
    """Return the name of a copy from its content hash, so that it cannot leave the directory."""
    if not _DIGEST.fullmatch(file.digest) or "/" in file.suffix or "\0" in file.suffix:
        raise ExecutionError(f"the copy of '{file.path}' cannot be kept under its name")
    return file.digest + file.suffix


def _write(path: Path, content: pa.Buffer) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_ARRIVING)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _paths(spec: TableSpec) -> frozenset[str]:
    return frozenset(path for scan in spec.scans for path in scan.paths if scan.store is None)


def _unreadable(file: OwnFile) -> str:
    if not file.digest:
        return (
            f"its file of {file.size_bytes} bytes is too large to be sent from the scheduler's "
            "host; put it where every executor can read it"
        )
    return "its file is on the scheduler's host and has not arrived here"
