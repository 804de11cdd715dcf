"""The state of a view follows from its plan and from the states of its tables."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.manifest import Dataset, View
from caraway_core.statements import ViewFacts
from caraway_scheduler.catalog.judging import InstalledCatalog, Judge
from caraway_scheduler.catalog.states import DatasetState, Status, ViewState

GONE = DatasetError("not_found", "dataset 'd': no such file")


def dataset(status: Status, error: DatasetError | None = None) -> DatasetState:
    made = Dataset(name="d", source="file:x.csv", connector="file", path="x.csv", params={},
                   base_dir=Path())  # fmt: skip
    return DatasetState(made, status=status, error=error)


def judged(
    name: str,
    lacking: Mapping[str, str],
    reads: Mapping[str, tuple[str, ...]] | None = None,
    datasets: Mapping[str, DatasetState] | None = None,
    failed: Mapping[str, str] | None = None,
) -> ViewState:
    facts = {
        TableName(view): ViewFacts(missing=TableName(table)) for view, table in lacking.items()
    }
    for view, tables in (reads or {}).items():
        facts[TableName(view)] = ViewFacts(frozenset(map(TableName, tables)))
    failures = {TableName(view): f"table '{table}' not found" for view, table in lacking.items()}
    failures.update({TableName(view): text for view, text in (failed or {}).items()})
    views = {view: View(view, "SELECT 1", Path()) for view in (*facts, *failures)}
    known = {TableName(each): state for each, state in (datasets or {}).items()}
    judge = Judge(InstalledCatalog(failures, facts), known, views)
    return judge.state(View(name, "SELECT 1", Path()))


def test_a_view_that_was_never_installed_is_initializing() -> None:
    assert (
        Judge(InstalledCatalog(), {}, {}).state(View("v", "SELECT 1", Path())).status
        == "initializing"
    )


@pytest.mark.parametrize("status", ["initializing", "refreshing"])
def test_a_view_waits_for_a_dataset_that_loads(status: Status) -> None:
    state = judged("v", {"v": "d"}, datasets={"d": dataset(status)})
    assert (state.status, state.waits_for, state.error) == ("initializing", "dataset 'd'", None)


def test_a_view_over_a_view_waits_for_the_same_dataset() -> None:
    state = judged("w", {"w": "v", "v": "d"}, datasets={"d": dataset("initializing")})
    assert (state.status, state.waits_for) == ("initializing", "dataset 'd'")


@pytest.mark.parametrize("name", ["v", "w", "x"])
def test_a_dataset_in_error_is_the_cause_at_every_depth(name: str) -> None:
    datasets = {"d": dataset("error", GONE)}
    state = judged(name, {"x": "w", "w": "v", "v": "d"}, datasets=datasets)
    assert state.status == "error" and state.error is not None
    assert state.error.code == "dataset.unavailable"
    assert state.error.message.count("no such file") == 1


def test_a_view_that_can_be_planned_follows_a_later_error() -> None:
    state = judged("v", {}, {"v": ("d",)}, {"d": dataset("error", GONE)})
    assert state.status == "error"
    assert judged("v", {}, {"v": ("d",)}, {"d": dataset("ready")}).status == "ready"


def test_a_cycle_is_named() -> None:
    state = judged("a", {"a": "b", "b": "c", "c": "b"})
    assert state.error is not None and "b -> c -> b" in state.error.message
    state = judged("a", {"a": "a"})
    assert state.error is not None and "(a -> a)" in state.error.message


def test_a_cycle_through_an_accelerated_view_is_named() -> None:
    lacking = {"v": "d", "caraway_source.d": "v"}
    state = judged("v", lacking, datasets={"d": dataset("initializing")})
    assert state.error is not None and "v -> d -> v" in state.error.message


def test_an_unknown_table_is_not_found() -> None:
    state = judged("v", {"v": "nowhere"})
    assert state.error is not None and state.error.code == "dataset.not_found"
    assert "table 'nowhere' not found" in state.error.message


def test_a_disabled_dataset_is_named_as_such() -> None:
    state = judged("v", {"v": "d"}, datasets={"d": dataset("disabled")})
    assert state.error is not None and "is disabled" in state.error.message


def test_sql_that_cannot_be_planned_is_invalid() -> None:
    state = judged("v", {}, failed={"v": "syntax error: Expected: an expression"})
    assert state.error is not None and state.error.code == "dataset.invalid"


def test_a_long_chain_ends() -> None:
    chain = {f"v{n}": f"v{n + 1}" for n in range(2000)}
    assert judged("v0", chain).status == "error"
