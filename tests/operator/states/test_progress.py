"""The progress of the operator is stored in a status, and read again whatever is there."""

from typing import Any

import pytest

from caraway_operator.states import progress
from caraway_operator.states.progress import ExecutorDrain, ReconcileProgress


@pytest.mark.parametrize(
    "kept",
    [
        ReconcileProgress(executors=0),
        ReconcileProgress(drain=ExecutorDrain("e-1", 1_700_000_000.0, "update")),
        ReconcileProgress(
            ExecutorDrain("e-1", 5.0), 3, "scheduler", 7.0, True, {"head": 1, "executor": 3}
        ),
    ],
)
def test_progress_is_read_as_it_was_stored(kept: ReconcileProgress) -> None:
    assert progress.read_progress(progress.progress_status(kept)) == kept


def test_no_progress_is_not_stored() -> None:
    assert progress.progress_status(ReconcileProgress()) is None
    assert progress.read_progress(None) == ReconcileProgress()


@pytest.mark.parametrize(
    "value",
    [
        7, "x", [], {}, {"drain": 7}, {"drain": {}}, {"drain": {"executor": ""}},
        {"drain": {"executor": 7, "since": 1}}, {"executors": "3"}, {"executors": 1.5},
        {"step": None}, {"since": "now"}, {"since": None}, {"wasReady": "true"}, {"wasReady": 1},
        {"full": []}, {"full": {"head": "1", "executor": None}}, {"other": 1},
    ],
)  # fmt: skip
def test_values_that_are_malformed_are_ignored(value: Any) -> None:
    assert progress.read_progress(value) == ReconcileProgress()


def test_an_unknown_purpose_is_to_scale() -> None:
    read = progress.read_progress({"drain": {"executor": "e", "since": "soon", "purpose": "fun"}})
    assert read.drain == ExecutorDrain("e", 0.0, "scale")
