"""Prints the progress of a long query.

client.query("SELECT ...").wait(on_progress=progress.show)
"""

import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from caraway.statements.queries import QueryState


def describe(state: "QueryState") -> str:
    """Describe the progress of a query, or return "" if nothing is known."""
    progress, waits_for = state.progress, str(state.document.get("waits_for") or "")
    parts = [f"waiting: {waits_for}"] if waits_for else []
    if progress is None:
        return ", ".join(parts)
    if progress.tasks_total:
        parts.append(f"{progress.tasks_done:,} of {progress.tasks_total:,} tasks")
    if progress.rows:
        parts.append(f"{progress.rows:,} rows")
    return ", ".join(parts)


def show(state: "QueryState", to: TextIO | None = None) -> None:
    """Print a state on standard error: over the last line on a terminal, else on a new line."""
    stream = sys.stderr if to is None else to
    done = describe(state)
    line = f"{state.status}: {done}" if done else state.status
    if stream.isatty():
        print(f"\r\033[K{line}", end="\n" if state.is_over else "", file=stream, flush=True)
    else:
        print(line, file=stream, flush=True)
