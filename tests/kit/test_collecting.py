"""Workers share the work of collecting tests."""

import gc
import os

import pytest
from hypothesis.internal.conjecture import providers

from caraway_core.loading import imports
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


def test_workers_draw_without_the_constants_of_source() -> None:
    takes_constants_of = vars(providers)["is_local_module_file"]
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    assert takes_constants_of(imports.__file__) is not is_worker
