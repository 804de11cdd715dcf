"""Waiting for an asynchronous query, and showing on standard error how far it is."""

from contextlib import closing
from typing import TYPE_CHECKING, TextIO

import typer

from caraway_core.errors import CarawayError

if TYPE_CHECKING:
    from caraway.queries import Query, QueryState

_REFRESH_S = 1.0


def succeed(query: "Query", stderr: TextIO) -> "QueryState":
    """Return the state of the query once it has succeeded.

    Raises:
        CarawayError: it did not, or its rows are there no longer.
    """
    try:
        state = _bar(query, stderr) if stderr.isatty() else _lines(query, stderr)
    except KeyboardInterrupt:
        print(f"query '{query.id}' goes on; {how_to_fetch(query.id)}", file=stderr)
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
    return f"fetch its rows with: caraway query results {query_id}"


def described(state: "QueryState") -> str:
    """What is known of the work that is done, as a person would say it; "" if nothing is."""
    progress, waits_for = state.progress, str(state.document.get("waits_for") or "")
    parts = [f"waits: {waits_for}"] if waits_for else []
    if progress is None:
        return ", ".join(parts)
    if progress.tasks_total:
        parts.append(f"{progress.tasks_done:,} of {progress.tasks_total:,} tasks")
    if progress.rows:
        parts.append(f"{progress.rows:,} rows")
    return ", ".join(parts)


def _lines(query: "Query", stderr: TextIO) -> "QueryState":
    """A line for each change, for logs."""
    last = ""
    with closing(query.watch()) as states:
        for state in states:
            done = described(state)
            line = f"{state.status}: {done}" if done else state.status
            if line != last and not state.is_over:
                print(line, file=stderr, flush=True)
            last = line
    return state


def _bar(query: "Query", stderr: TextIO) -> "QueryState":
    # rich takes 0.1 s to import, which commands that wait for nothing would pay as well.
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
        # Without a total it pulses.
        row = bar.add_task("PENDING", total=None, done="")
        for state in states:
            progress = state.progress
            bar.update(row, description=state.status, done=described(state))
            if progress is not None and progress.tasks_total:
                bar.update(row, total=progress.tasks_total, completed=progress.tasks_done)
    return state
