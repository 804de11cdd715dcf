"""Pieces of tables: what of a table one task reads. Values that cross to executors."""

from __future__ import annotations

from dataclasses import dataclass

from caraway_core.tables import TableSplit


@dataclass(frozen=True, slots=True)
class FileRange:
    """Bytes `start` to `end` of a file that a table is read from, under the engine's own name.

    `size_bytes` is that of the whole file when it was listed: a task whose executor finds another
    size fails, because the other shares were cut from another file.
    """

    path: str
    start: int
    end: int
    size_bytes: int

    @property
    def name(self) -> str:
        return self.path

    @property
    def read_bytes(self) -> int:
        return self.end - self.start

    @property
    def is_whole(self) -> bool:
        return self.start == 0 and self.end == self.size_bytes


@dataclass(frozen=True, slots=True)
class StoredPiece:
    """A partition of a version of an accelerated dataset, or a chunk where it is not cut."""

    name: str
    size_bytes: int = 0

    @property
    def read_bytes(self) -> int:
        return self.size_bytes


@dataclass(frozen=True, slots=True)
class SplitPiece:
    """A split of a table that a reader reads alone, as the ranges of a key in a database."""

    split: TableSplit

    @property
    def name(self) -> str:
        return self.split.name

    @property
    def read_bytes(self) -> int:
        return self.split.size_bytes


Piece = FileRange | StoredPiece | SplitPiece
