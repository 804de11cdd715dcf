"""Marks of snapshots and choices among them, as keys of a store."""

import pytest

from caraway_core.ids import TableName
from caraway_core.protocols import snapshots
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.snapshots import FoundSnapshot

PREFIX = snapshots.prefix_of(TableName("sales"))
SHA = "ab" * 32
STATE = "cd" * 16


def mark(made: int, number: int, size: int = 7) -> str:
    return f"{PREFIX}{made:x}-{SHA}-{size}-{number:032x}"


def choice(at: int, number: int, state: str = STATE) -> str:
    return f"{PREFIX}c{at:x}-{number:032x}-{state}"


def test_marks_and_choices_are_read_as_they_are_written() -> None:
    identity, description = snapshots.new_description(PREFIX)
    key = snapshots.mark_of(PREFIX, identity, ChunkInfo(0, 1, 7, SHA))
    (found,) = snapshots.listing(PREFIX, [key]).found
    assert (found.mark, found.identity, found.description) == (key, identity, description)
    assert found.chunk == ChunkInfo(0, 1, 7, SHA)
    chosen = snapshots.listing(PREFIX, [snapshots.choice_of(PREFIX, found, "state"), key]).current
    assert chosen is not None
    assert chosen.was_restored_as("state") and not chosen.was_restored_as("other")
    assert not found.was_restored_as("state") and not found.was_restored_as("")


def test_numbers_of_snapshots_are_microseconds() -> None:
    (found,) = snapshots.listing(PREFIX, [mark(1_700_000_000_123_456_789, 1)]).found
    assert found.number == 1_700_000_000_123_456
    assert found.number < 2**53


@pytest.mark.parametrize(
    "key",
    [
        "", PREFIX, "other", mark(1, 1)[1:], mark(1, 1) + "0", mark(1, 1).upper(),
        f"{PREFIX}-{SHA}-7-{1:032x}", f"{PREFIX}1-{SHA[1:]}-7-{1:032x}",
        f"{PREFIX}1-{SHA}--{1:032x}", f"{PREFIX}1-{SHA}-7-{1:031x}", choice(1, 1)[:-1],
        choice(1, 1).replace("-", "_"),
        snapshots.prefix_of(TableName("sales2")) + mark(1, 1).removeprefix(PREFIX),
    ],
)  # fmt: skip
def test_other_keys_are_passed_over(key: str) -> None:
    listing = snapshots.listing(PREFIX, [key])
    assert (listing.found, listing.choices, listing.current) == ((), (), None)


@pytest.mark.parametrize(
    ("keys", "current", "kept"),
    [
        ([], None, []),
        ([mark(2, 2), mark(1, 1), mark(3, 3)], 3, [2, 3]),
        ([mark(1, 1), mark(2, 2), mark(3, 3), choice(4, 1)], 1, [1, 2, 3]),
        ([mark(1, 1), mark(2, 2), mark(3, 3), choice(4, 2)], 2, [2, 3]),
        # A snapshot that was made after the choice, or a choice of one that is gone.
        ([mark(1, 1), mark(2, 2), choice(3, 1), mark(4, 4)], 4, [2, 4]),
        ([mark(2, 2), mark(3, 3), choice(4, 1)], 3, [2, 3]),
        ([choice(5, 3), mark(1, 1), choice(4, 1), mark(2, 2), mark(3, 3)], 3, [2, 3]),
        ([choice(4, 1)], None, []),
    ],
)  # fmt: skip
def test_the_last_snapshot_is_current_unless_an_older_one_was_chosen_after_it(
    keys: list[str], current: int | None, kept: list[int]
) -> None:
    listing = snapshots.listing(PREFIX, keys)
    assert number(listing.current) == current
    assert [number(each) for each in listing.kept(2)] == kept


def number(found: FoundSnapshot | None) -> int | None:
    return None if found is None else int(found.identity, 16)
