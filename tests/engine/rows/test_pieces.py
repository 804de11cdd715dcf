"""Rows that are born and die, held against a list of lives."""

import weakref

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import OutOfMemoryQueryError
from caraway_engine.rows.pieces import RowRange


def batch(first: int, count: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(first, first + count), pa.int64())})


def made(count: int, births: list[tuple[int, int]] | None = None, first: int = 0) -> RowRange:
    return RowRange(batch(first, count), first, births or [(0, count)], "held")


def shown(of: RowRange, ordinal: int, since: int = 0) -> list[int]:
    seen = of.seen(ordinal, since, lambda _size: None)
    return [row["n"] for each in seen for row in each.batch.to_pylist()]


def flagged(of: RowRange, ordinal: int, since: int = 0) -> list[int]:
    found = []
    for unit in of.units(ordinal, since):
        numbers = unit.batch.column("n").to_pylist()
        seen = unit.seen or bytes([1] * len(numbers))
        found += [n for n, flag in zip(numbers, seen, strict=True) if flag]
    return found


@st.composite
def lives(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], list[tuple[int, int]]]:
    """Draw a first number, births, and deaths of rows in order of their ordinals."""
    first = draw(st.integers(0, 5))
    counts = draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    births = [(ordinal * 2, sum(counts[: ordinal + 1])) for ordinal in range(len(counts))]
    numbers = list(range(first, first + sum(counts)))
    dying = draw(st.lists(st.sampled_from(numbers), unique=True)) if numbers else []
    ordinals = sorted(draw(st.integers(1, 12)) for _ in dying)
    return first, births, list(zip(dying, ordinals, strict=True))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(lives(), st.lists(st.tuples(st.integers(0, 13), st.integers(0, 30)), max_size=12))
def test_a_position_shows_who_lives_then(
    drawn: tuple[int, list[tuple[int, int]], list[tuple[int, int]]], asked: list[tuple[int, int]]
) -> None:
    first, births, deaths = drawn
    count = births[-1][1]
    held = made(count, births, first)
    for number, ordinal in deaths:
        held.kill(number, ordinal)
    born = {
        first + row: next(ordinal for ordinal, total in births if row < total)
        for row in range(count)
    }
    died = dict(deaths)
    assert held.end == first + count
    for ordinal, drawn_since in asked:
        # A position never begins behind the existing rows.
        since = min(drawn_since, first + sum(at <= ordinal for at in born.values()))
        alive = [n for n, at in born.items() if at <= ordinal and died.get(n, 99) > ordinal]
        assert [n for n in born if held.is_seen(n, ordinal)] == alive
        expected = [n for n in alive if n >= since]
        assert held.count(ordinal, since) == len(expected)
        assert shown(held, ordinal, since) == expected
        assert flagged(held, ordinal, since) == expected
        # As it was asked before: the copy that is kept is the same.
        assert shown(held, ordinal, since) == expected


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=4), st.data())
def test_joined_ranges_are_what_they_were(counts: list[int], data: st.DataObject) -> None:
    ranges, start = [], 3
    for ordinal, count in enumerate(counts):
        ranges.append(made(count, [(ordinal, count)], start))
        start += count
    numbers = list(range(3, start))
    dying = data.draw(st.lists(st.sampled_from(numbers), unique=True)) if numbers else []
    for ordinal, number in enumerate(dying):
        piece = next(each for each in ranges if each.first <= number < each.end)
        piece.kill(number, ordinal + 4)
    sizes: list[int] = []

    def hold(size: int) -> object:
        sizes.append(size)
        return "one"

    one = ranges[0].joined(ranges[1:], hold)
    assert sizes == [one.batch.nbytes] and one.holder == "one"
    assert (one.first, one.end) == (3, start)
    for ordinal in range(len(counts) + len(dying) + 6):
        assert shown(one, ordinal) == [n for each in ranges for n in shown(each, ordinal)]
        assert one.count(ordinal) == sum(each.count(ordinal) for each in ranges)


def test_rows_of_which_none_died_are_not_copied() -> None:
    held = made(5)
    (seen,) = held.seen(0, 2, lambda _size: pytest.fail("nothing is to be held"))
    assert seen.batch["n"].buffers()[1].address == held.batch["n"].buffers()[1].address
    assert seen.holder == "held"
    held.kill(0, 3)
    (before,) = held.seen(2, 0, lambda _size: pytest.fail("nothing is to be held"))
    assert before.batch.num_rows == 5


def test_a_copy_is_counted_and_kept_until_another_is_asked_for() -> None:
    held, sizes = made(10), list[int]()

    def hold(size: int) -> object:
        sizes.append(size)
        return len(sizes)

    held.kill(4, 1)
    (first,) = held.seen(1, 0, hold)
    (again,) = held.seen(5, 0, hold)
    assert again is first and sizes == [9 * 8]
    assert first.holder == ("held", 1), "the rows that it was copied from are kept, too"
    held.kill(5, 6)
    assert shown(held, 6) == [0, 1, 2, 3, 6, 7, 8, 9]
    assert shown(held, 5) == [0, 1, 2, 3, 5, 6, 7, 8, 9], "an earlier position, after a later one"
    held.seen(6, 0, hold)
    assert len(sizes) == 2


def refuse(_size: int) -> object:
    raise OutOfMemoryQueryError("no room")


def test_without_room_for_a_copy_rows_come_in_parts() -> None:
    held = made(10)
    for number in (0, 4, 5, 9):
        held.kill(number, 1)
    parts = held.seen(1, 0, refuse)
    assert [each.batch["n"].to_pylist() for each in parts] == [[1, 2, 3], [6, 7, 8]]
    assert [each.holder for each in parts] == ["held", "held"]
    assert [each.batch["n"].to_pylist() for each in held.seen(1, 5, refuse)] == [[6, 7, 8]]
    assert held.seen(0, 0, refuse)[0].batch.num_rows == 10


def test_too_many_parts_are_refused() -> None:
    held = made(4000)
    for number in range(0, 2002, 2):
        held.kill(number, 1)
    with pytest.raises(OutOfMemoryQueryError):
        held.seen(1, 0, refuse)


def test_when_all_died_there_is_nothing() -> None:
    held = made(2)
    held.kill(0, 1)
    held.kill(1, 2)
    assert [shown(held, ordinal) for ordinal in range(4)] == [[0, 1], [1], [], []]
    assert [held.count(ordinal) for ordinal in range(4)] == [2, 1, 0, 0]


def test_flags_of_rows_are_made_once_for_what_is_visible() -> None:
    held = made(3)
    (first,) = held.units(0, 0)
    assert first.seen is None
    held.kill(1, 1)
    (before,), (again,) = held.units(1, 0), held.units(2, 0)
    assert before.seen == b"\1\0\1"
    assert before.seen is again.seen
    assert [each.seen for each in held.units(0, 0)] == [None]
    assert [each.seen for each in held.units(1, 0)] == [before.seen]
    # Units do not refer to what refers to them, so that their end waits for no collection.
    gone = weakref.ref(held)
    del held
    assert gone() is None


def test_parts_are_known_again_after_ranges_were_joined() -> None:
    parts = [made(2, [(number, 2)], 2 * number) for number in range(64)]
    keys = [unit.key for part in parts for unit in part.units(70, 0)]
    joined = parts[0].joined(parts[1:], lambda size: size)
    joined.kill(3, 71)
    units = joined.units(71, 0)
    assert [unit.key for unit in units] == keys
    assert [unit.batch.column("n").to_pylist() for unit in units[:2]] == [[0, 1], [2, 3]]
    assert [unit.seen for unit in units[:3]] == [b"\1\1", b"\1\0", b"\1\1"]
    more = joined.joined([made(1, first=128)], lambda size: size)
    assert [unit.batch.num_rows for unit in more.units(71, 0)] == [129]
