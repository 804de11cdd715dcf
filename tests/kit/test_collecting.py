"""Workers share the work of collecting tests."""

import gc

import pytest

from tests.kit.collecting import rotated


@pytest.mark.parametrize(
    ("place", "first"), [(0.0, "a"), (0.24, "a"), (0.25, "b"), (0.5, "c"), (0.75, "d")]
)
def test_workers_begin_at_different_places_and_collect_everything(place: float, first: str) -> None:
    entries = ["a", "b", "c", "d"]
    assert rotated(entries, place)[0] == first
    assert sorted(rotated(entries, place)) == entries


def test_nothing_is_rotated_to_nothing() -> None:
    assert rotated([], 0.5) == []


def test_what_was_collected_is_not_visited_by_the_collector_of_garbage() -> None:
    assert gc.get_freeze_count() > 10_000
