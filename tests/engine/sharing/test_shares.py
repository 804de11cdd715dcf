import pickle
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.pieces import FileRange, Piece, SplitPiece, StoredPiece
from caraway_engine.sharing.shares import (
    ListedPiece,
    divide_files,
    piece,
    place,
    place_buckets,
    ranked,
)
from tests.kit.squares import NumbersSplit

SIZES = st.integers(1, 1000)
FILES = st.lists(st.tuples(SIZES, st.booleans()), max_size=12).map(
    lambda drawn: [ListedPiece(f"f{n:02}", *each) for n, each in enumerate(drawn)]
)


def size(share: Sequence[Piece]) -> int:
    return sum(piece.read_bytes for piece in share)


@given(FILES, st.integers(1, 9))
def test_every_byte_is_in_exactly_one_share(files: list[ListedPiece], count: int) -> None:
    shares = divide_files(files, count)
    assert len(shares) == count
    for file in files:
        pieces = sorted(
            (piece.start, piece.end) for share in shares for piece in share
            if isinstance(piece, FileRange) and piece.name == file.name
        )  # fmt: skip
        assert [start for start, _ in pieces] == [0, *(end for _, end in pieces[:-1])]
        assert pieces[-1][1] == file.size_bytes
        assert all(start < end for start, end in pieces)
        assert file.is_splittable or len(pieces) == 1


@given(st.lists(SIZES, max_size=12), st.integers(1, 9))
def test_files_that_can_be_split_are_dealt_evenly(sizes: list[int], count: int) -> None:
    files = [ListedPiece(f"f{n:02}", each, True) for n, each in enumerate(sizes)]
    shares = divide_files(files, count)
    assert max(map(size, shares)) <= max(sum(sizes) / count * 1.2, sum(sizes) / count + 1)
    assert sum(map(len, shares)) < len(sizes) + count


def test_files_are_not_split_when_whole_ones_come_out_nearly_even() -> None:
    files = [ListedPiece(f"f{n}", size_bytes, True) for n, size_bytes in enumerate((10, 11, 9, 10))]

    shares = divide_files(files, 2)

    assert [[isinstance(each, FileRange) and each.is_whole for each in one] for one in shares] == [
        [True, True], [True, True],
    ]  # fmt: skip


@given(FILES, st.integers(1, 9))
def test_no_share_is_larger_than_even_by_more_than_a_whole_file(
    files: list[ListedPiece], count: int
) -> None:
    whole = max((file.size_bytes for file in files if not file.is_splittable), default=0)
    total = sum(file.size_bytes for file in files)
    # In whole numbers: 1.2 times the even share is not always exact.
    most = max(map(size, divide_files(files, count)))
    assert most * count <= total + (whole + 1) * count or 5 * most * count <= 6 * total


def test_shares_do_not_depend_on_the_order_of_the_listing() -> None:
    files = [ListedPiece(f"f{n}", 10 + n % 3, n % 2 == 0) for n in range(9)]
    assert divide_files(files, 4) == divide_files(files[::-1], 4)


KEPT = st.lists(st.integers(1, 1000), max_size=40).map(
    lambda sizes: tuple(ListedPiece(f"f{n:02}", size, False, True) for n, size in enumerate(sizes))
)


@given(KEPT, st.integers(1, 6))
def test_kept_files_are_placed_once_and_evenly(files: tuple[ListedPiece, ...], count: int) -> None:
    owners = tuple(f"e{number}" for number in range(count))
    shares = place(files, owners)

    placed = [piece.name for share in shares for piece in share]
    assert sorted(placed) == [file.name for file in files]
    assert all([*share] == sorted(share, key=lambda piece: piece.name) for share in shares)
    total = sum(file.size_bytes for file in files)
    largest = max((file.size_bytes for file in files), default=0)
    assert max(map(size, shares)) <= total / count * 1.05 + largest


def test_kept_files_stay_where_they_are_when_an_owner_comes() -> None:
    files = tuple(ListedPiece(f"f{number}", 3_000_000, False, True) for number in range(300))
    before = place(files, ("e1", "e2"))
    after = place(files, ("e1", "e2", "e3"))

    moved = sum(len({*new} - {*old}) for new, old in zip(after, before, strict=False))
    assert len(after[2]) <= 105
    # The moves between e1 and e2 are the cost of an even load.
    assert moved <= 10


def test_kept_files_stay_where_they_are_in_another_version() -> None:
    files = tuple(ListedPiece(f"f{number}", 3_000_000, False, True) for number in range(300))
    more = (*files[10:], *(ListedPiece(f"g{n}", 3_000_000, False, True) for n in range(10)))
    moved = sum(
        len({piece.name for piece in new} - {piece.name for piece in old})
        for new, old in zip(place(more, ("e1", "e2")), place(files, ("e1", "e2")), strict=True)
    )
    assert moved <= 20


def made_by(owners: tuple[str, ...], count: int = 300) -> tuple[ListedPiece, ...]:
    """Files that owners made one after another, each an even part."""
    return tuple(
        ListedPiece(f"f{number}", 3_000_000, False, True, owners[number * len(owners) // count])
        for number in range(count)
    )


def test_kept_files_are_read_where_they_were_made() -> None:
    files = made_by(("e1", "e2"))
    halves = [[file.name for file in files[:150]], [file.name for file in files[150:]]]
    assert [[piece.name for piece in share] for share in place(files, ("e1", "e2"))] == halves


@pytest.mark.parametrize("owners", range(1, 5))
def test_files_leave_where_they_were_made_only_for_an_owner_that_comes(owners: int) -> None:
    before = tuple(f"e{number}" for number in range(owners))
    files = made_by(before)
    old, new = place(files, before), place(files, (*before, "new"))
    assert all({*now} <= {*then} for now, then in zip(new, old, strict=False))
    part = len(files) / (owners + 1)
    assert 0.8 * part <= len(new[-1]) <= 1.05 * part + 1
    assert place(files, before) == old


def test_what_one_made_alone_is_shared_out_all_the_same() -> None:
    files = made_by(("e1",))
    shares = place(files, ("e1", "e2", "e3"))
    assert max(map(len, shares)) <= 100 * 1.05 + 1
    assert {piece.name for piece in shares[0]} <= {file.name for file in files}


@pytest.mark.parametrize("count", [2, 16, 64, 1000])
@pytest.mark.parametrize("owners", range(1, 9))
def test_an_owner_that_comes_takes_its_part_and_nothing_else_moves(count: int, owners: int) -> None:
    before = tuple(f"executor-{number}" for number in range(owners))
    after = (*before, f"executor-{owners}")
    old, new = place_buckets(count, before), place_buckets(count, after)
    moved = [taker for giver, taker in zip(old, new, strict=True) if giver != taker]
    assert len(moved) <= count // (owners + 1) * 1.1
    assert set(moved) <= {owners}
    assert _is_even(new, owners + 1)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("lost", range(5))
def test_of_an_owner_that_goes_only_its_own_buckets_move(lost: int, first: int) -> None:
    before = tuple(f"e{number}" for number in range(first, first + 5))
    gone = before[lost]
    after = tuple(name for name in before if name != gone)
    old = [before[owner] for owner in place_buckets(64, before)]
    new = place_buckets(64, after)
    assert all(was in (gone, after[now]) for was, now in zip(old, new, strict=True))
    assert max(Counter(new).values()) <= 1.5 * 64 / 4


@pytest.mark.parametrize("names", [("b", "a", "c"), ("x1", "y2", "z3"), ("n1", "n999999")])
def test_owners_without_numbers_have_even_parts(names: tuple[str, ...]) -> None:
    placed = place_buckets(64, names)
    assert _is_even(placed, len(names))
    by_name = [names[owner] for owner in placed]
    turned = tuple(reversed(names))
    assert by_name == [turned[owner] for owner in place_buckets(64, turned)]


def test_the_next_owner_is_the_one_that_takes_over() -> None:
    names = ("e0", "e1", "e2", "e4")
    ranks = ranked(32, names, 2)
    for lost, name in enumerate(names):
        left = tuple(each for each in names if each != name)
        now = place_buckets(32, left)
        for bucket, owners in enumerate(ranks):
            taker = next(names[owner] for owner in owners if owner != lost)
            assert left[now[bucket]] == taker


def test_there_are_no_more_ranks_than_owners() -> None:
    assert all(sorted(each) == [0, 1] for each in ranked(8, ("e1", "e2"), 5))


def _is_even(placed: tuple[int, ...], owners: int) -> bool:
    sizes = Counter(placed)
    return max(sizes.values()) - min(sizes[owner] for owner in range(owners)) <= 1


def test_piece_says_what_kind_of_part_it_is() -> None:
    split = NumbersSplit(3, 7)
    listed = [
        ListedPiece("a.parquet", 10, True),
        ListedPiece("c0ffee", 20, False, is_kept=True),
        ListedPiece(split.name, split.size_bytes, False, split=split),
    ]
    found = [piece(each, 0, each.size_bytes) for each in listed]
    assert found == [
        FileRange("a.parquet", 0, 10, 10), StoredPiece("c0ffee", 20), SplitPiece(split),
    ]  # fmt: skip
    assert [each.name for each in found] == [each.name for each in listed]
    assert size(found) == 10 + 20 + 64
    assert pickle.loads(pickle.dumps(found)) == found
