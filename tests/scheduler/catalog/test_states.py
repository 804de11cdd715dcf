"""The states of a dataset: those that the runtime waits for, and those that statements read."""

from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.manifest import Dataset
from caraway_core.manifest.values.acceleration import Acceleration
from caraway_scheduler.catalog.states import DatasetState, ReadyState, Status, source_of, tables_of

SOURCE: Any = object()
VERSION: Any = object()
ERROR = DatasetError("invalid", "broken")
STATUSES: tuple[Status, ...] = get_args(Status)
READY_STATES: tuple[ReadyState, ...] = get_args(ReadyState)


def state(is_accelerated: bool = False, **fields: Any) -> DatasetState:
    acceleration = Acceleration() if is_accelerated else None
    dataset = Dataset("sales.t", "file:t", "file", "t", Path("/"), acceleration=acceleration)
    return DatasetState(dataset, **fields)


@pytest.mark.parametrize(("status", "ready_state"), list(product(STATUSES, READY_STATES)))
def test_dataset_lets_the_runtime_be_ready(status: Status, ready_state: ReadyState) -> None:
    found = state(status=status, ready_state=ready_state)
    is_loaded = status in ("ready", "refreshing", "disabled")
    assert found.is_ready == (is_loaded or ready_state == "on_registration")
    found.error = ERROR
    assert found.is_ready == is_loaded


@pytest.mark.parametrize("status", STATUSES)
def test_being_loaded_is_for_accelerated_datasets_without_rows_and_fault(status: Status) -> None:
    is_loading = status in ("initializing", "refreshing")
    assert state(True, status=status).is_being_loaded == is_loading
    assert not state(False, status=status).is_being_loaded
    assert not state(True, status=status, version=VERSION).is_being_loaded
    assert not state(True, status=status, error=ERROR).is_being_loaded


@pytest.mark.parametrize(
    ("is_accelerated", "spec", "version", "ready_state", "expected"),
    [
        (False, None, None, "on_load", {}),
        (False, SOURCE, None, "on_load", {"sales.t": SOURCE}),
        (True, None, None, "on_load", {}),
        (True, SOURCE, None, "on_load", {"caraway_source.sales__t": SOURCE}),
        (True, SOURCE, None, "on_registration",
         {"caraway_source.sales__t": SOURCE, "sales.t": SOURCE}),
        (True, SOURCE, VERSION, "on_registration",
         {"caraway_source.sales__t": SOURCE, "sales.t": VERSION}),
        (True, None, VERSION, "on_load", {"sales.t": VERSION}),
    ],
)  # fmt: skip
def test_statements_read_the_version_and_never_a_source_before_its_time(
    is_accelerated: bool, spec: Any, version: Any, ready_state: ReadyState, expected: dict[str, Any]
) -> None:
    found = state(is_accelerated, spec=spec, version=version, ready_state=ready_state)
    assert tables_of(found) == expected


@pytest.mark.parametrize(
    ("name", "source"), [("t", "caraway_source.t"), ("s.t", "caraway_source.s__t")]
)
def test_source_of_an_accelerated_dataset_has_a_name_of_one_part(name: str, source: str) -> None:
    assert source_of(TableName(name)) == source


def test_states_share_no_event() -> None:
    one, two = state(), state()
    one.stale.set()
    assert not two.stale.is_set()
