"""The progress of a query in words."""

import io

import pytest

from caraway import progress
from caraway.statements.queries import QueryProgress, QueryState


def counted(done: int, total: int, rows: int) -> QueryProgress:
    return QueryProgress(tasks_done=done, tasks_total=total, rows=rows)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (QueryState("PENDING"), ""),
        (QueryState("PENDING", document={"waits_for": "memory"}), "waiting: memory"),
        (QueryState("PENDING", document={"waits_for": None}), ""),
        (QueryState("RUNNING", progress=counted(0, 0, 0)), ""),
        (QueryState("RUNNING", progress=counted(0, 4, 0)), "0 of 4 tasks"),
        (QueryState("RUNNING", progress=counted(1, 4000, 1234567)),
         "1 of 4,000 tasks, 1,234,567 rows"),
        (QueryState("RUNNING", progress=counted(1, 4, 0), document={"waits_for": "a seat"}),
         "waiting: a seat, 1 of 4 tasks"),
    ],
)  # fmt: skip
def test_words(state: QueryState, text: str) -> None:
    assert progress.describe(state) == text
    out = io.StringIO()
    progress.show(state, out)
    assert out.getvalue() == (f"{state.status}: {text}\n" if text else f"{state.status}\n")


def test_a_terminal_has_one_line() -> None:
    out = Terminal()
    progress.show(QueryState("RUNNING", progress=counted(1, 4, 0)), out)
    progress.show(QueryState("SUCCEEDED"), out)
    assert out.getvalue() == "\r\x1b[KRUNNING: 1 of 4 tasks\r\x1b[KSUCCEEDED\n"
