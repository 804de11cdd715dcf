"""Pieces of tables: what of a table one task reads."""

import pytest

from caraway_core.pieces import FileRange, SplitPiece, StoredPiece
from caraway_core.tables import TableSplit


@pytest.mark.parametrize(
    ("start", "end", "read_bytes", "is_whole"),
    [(0, 10, 10, True), (0, 9, 9, False), (1, 10, 9, False), (4, 6, 2, False)],
)
def test_a_range_of_a_file(start: int, end: int, read_bytes: int, is_whole: bool) -> None:
    piece = FileRange("/a", start, end, 10)
    assert (piece.name, piece.read_bytes, piece.is_whole) == ("/a", read_bytes, is_whole)


def test_an_empty_file_is_whole() -> None:
    assert FileRange("/a", 0, 0, 0).is_whole


class Split(TableSplit):
    @property
    def name(self) -> str:
        return "ids 1 to 5"

    @property
    def size_bytes(self) -> int:
        return 7


def test_other_pieces_have_the_size_of_their_rows() -> None:
    assert (StoredPiece("p", 3).read_bytes, StoredPiece("p").read_bytes) == (3, 0)
    piece = SplitPiece(Split())
    assert (piece.name, piece.read_bytes) == ("ids 1 to 5", 7)
