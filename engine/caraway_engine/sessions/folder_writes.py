"""Folders that statements write into: files that dead ones left, and those of one that fails.

On disk a file has another name until it is whole, as `x.parquet#1`. An engine that is killed leaves
it: no query reads it, and no program removes it.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from caraway_core.errors import ExecutionError, InvalidQueryError, QueryError
from caraway_core.tables import TableSpec

_DEAD_AFTER_S = 24 * 3600.0
"""Files that other programs begin have no lock, so none is removed that changed since."""
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class WrittenFolder:
    """The folder of a table. `path` is None for one in a bucket."""

    path: Path | None
    ending: str
    is_divided: bool
    """True if its files are in folders that are named for values."""

    @classmethod
    def of_table(cls, spec: TableSpec) -> WrittenFolder:
        """Return the folder that rows of a table are added to."""
        scan = spec.scans[0]
        path = None if scan.store is not None else Path(scan.paths[0])
        return cls(path, f".{scan.format}", bool(scan.partition_columns))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder while files are written into it; remove what dead statements left.

        Nothing is removed while another statement holds it, where the disk has locks.
        """
        if self.path is None or not self.path.is_dir():
            yield
            return
        opened = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if _is_locked(opened, fcntl.LOCK_EX):
                self._remove_dead(time.time())
            _is_locked(opened, fcntl.LOCK_SH)
            yield
        finally:
            os.close(opened)

    def files(self) -> frozenset[str]:
        """Return the files that are whole, if the folder is one on disk that is divided."""
        if self.path is None or not self.is_divided:
            return frozenset()
        whole = (each for each in _walked(self.path) if each.name.endswith(self.ending))
        return frozenset(str(each.relative_to(self.path)) for each in whole)

    def failed(self, error: QueryError, before: frozenset[str]) -> QueryError:
        """Return the error of a statement that wrote files, given those of before.

        The file of each partition appears by itself, after all rows were written.
        """
        if not self.is_divided or isinstance(error, InvalidQueryError):
            return error
        if self.path is None:
            left = "rows of some partitions may be inserted: look before you run it again"
            return ExecutionError(f"{error.message}; {left}")
        added = sorted(self.files() - before)
        if not added:
            return error
        more = f" and {len(added) - _MOST_NAMED} more" if len(added) > _MOST_NAMED else ""
        return ExecutionError(
            f"{error.message}; files were added meanwhile, with rows of their partitions: "
            f"{', '.join(added[:_MOST_NAMED])}{more}. Remove those of this statement before you "
            "run it again"
        )

    def _remove_dead(self, now_s: float) -> None:
        assert self.path is not None
        begun = re.compile(rf"[0-9A-Za-z]{{16}}(_[0-9]+)?{re.escape(self.ending)}#[0-9]+")
        for each in [each for each in _walked(self.path) if begun.fullmatch(each.name)]:
            with suppress(OSError):
                if now_s - each.stat().st_mtime > _DEAD_AFTER_S and not _is_open(each):
                    each.unlink()


def _walked(folder: Path) -> Iterator[Path]:
    return (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)


def _is_locked(opened: int, kind: int) -> bool:
    """Try to lock a folder; False: another statement holds it, or its disk has no locks."""
    try:
        fcntl.flock(opened, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_open(path: Path) -> bool:
    """Return whether a process of this machine has a file open, as far as that can be seen."""
    place = os.path.realpath(path)
    for each in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(each) == place:
                return True
    return False
