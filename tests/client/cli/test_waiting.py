"""Waiting for a query: lines of its progress, and what each end means."""

import io
from collections.abc import Generator
from typing import Any

import pytest
import typer

from caraway.cli import waiting
from caraway.statements.queries import QueryProgress, QueryState
from caraway_core.errors import CarawayError


class Query:
    """A query with given states; None is an interruption."""

    id = "q1"

    def __init__(self, *states: QueryState | None) -> None:
        self._states = states
        self.is_closed = False

    def watch(self, _refresh_s: float = 1.0) -> Generator[QueryState, None, None]:
        try:
            for state in self._states:
                if state is None:
                    raise KeyboardInterrupt
                yield state
        finally:
            self.is_closed = True


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def running(done: int) -> QueryState:
    return QueryState("RUNNING", progress=QueryProgress(tasks_done=done, tasks_total=4))


def wait(query: Any, to: io.StringIO) -> QueryState:
    return waiting.wait_for_success(query, to)


def test_each_change_is_a_line() -> None:
    out = io.StringIO()
    states = [QueryState("PENDING")] * 2 + [running(1)] * 3 + [running(2), QueryState("SUCCEEDED")]
    assert wait(Query(*states), out).has_succeeded
    assert out.getvalue().splitlines() == [
        "PENDING", "RUNNING: 1 of 4 tasks", "RUNNING: 2 of 4 tasks"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (QueryState("FAILED", "QueryError", "no table"), r"'q1' failed: no table \(QueryError\)"),
        (QueryState("CANCELLED"), "'q1' was cancelled"),
        (QueryState("CLOSED"), "have expired; submit it again"),
    ],
)
@pytest.mark.parametrize("out", [io.StringIO, Terminal])
def test_other_ends_are_errors(state: QueryState, said: str, out: type[io.StringIO]) -> None:
    query = Query(running(1), state)
    with pytest.raises(CarawayError, match=said):
        wait(query, out())
    assert query.is_closed


@pytest.mark.parametrize("out", [io.StringIO, Terminal])
def test_an_interruption_leaves_the_query(out: type[io.StringIO]) -> None:
    query, stream = Query(running(1), None), out()
    with pytest.raises(typer.Exit) as caught:
        wait(query, stream)
    assert caught.value.exit_code == 130
    assert "'q1' is still running; fetch the rows with: caraway query results q1" in (
        stream.getvalue()
    )
    assert query.is_closed
