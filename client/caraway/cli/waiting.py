"""Waits for an asynchronous query and shows its progress on standard error."""

from contextlib import closing
from typing import TYPE_CHECKING, TextIO

import typer

from caraway import progress
from caraway_core.errors import CarawayError

if TYPE_CHECKING:
    from caraway.statements.queries import QueryHandle, QueryState

_REFRESH_S = 1.0


def wait_for_success(query: "QueryHandle", stderr: TextIO) -> "QueryState":
    """Wait for a query to succeed and return its final state.

    Raises:
        CarawayError: the query failed or was cancelled, or its results have expired.
    """
    try:
        state = _bar(query, stderr) if stderr.isatty() else _lines(query, stderr)
    except KeyboardInterrupt:
        print(f"query '{query.id}' is still running; {how_to_fetch(query.id)}", file=stderr)
        raise typer.Exit(130) from None
    match state.status:
        case "FAILED":
            raise CarawayError(f"query '{query.id}' failed: {state.message} ({state.error_code})")
        case "CANCELLED":
            raise CarawayError(f"query '{query.id}' was cancelled")
        case "CLOSED":
            raise CarawayError(f"the results of query '{query.id}' have expired; submit it again")
    return state


def how_to_fetch(query_id: str) -> str:
    """Return a hint with the command that fetches the rows."""
    return f"fetch the rows with: caraway query results {query_id}"


def _lines(query: "QueryHandle", stderr: TextIO) -> "QueryState":
    """Print a line for each change, as suits logs."""
    last = ""
    with closing(query.watch()) as states:
        for state in states:
            done = progress.describe(state)
            line = f"{state.status}: {done}" if done else state.status
            if line != last and not state.is_over:
                print(line, file=stderr, flush=True)
            last = line
    return state


def _bar(query: "QueryHandle", stderr: TextIO) -> "QueryState":
    # rich takes 0.1 s to import, and only commands that wait need it.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[done]}"),
        console=Console(file=stderr),
        transient=True,
    )
    with bar, closing(query.watch(_REFRESH_S)) as states:
        # Without a total, the bar pulses.
        row = bar.add_task("PENDING", total=None, done="")
        for state in states:
            counted = state.progress
            bar.update(row, description=state.status, done=progress.describe(state))
            if counted is not None and counted.tasks_total:
                bar.update(row, total=counted.tasks_total, completed=counted.tasks_done)
    return state
