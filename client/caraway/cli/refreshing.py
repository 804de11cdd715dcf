"""`caraway refresh`: refresh an accelerated dataset and show the progress."""

import sys
from collections.abc import Generator
from contextlib import closing
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from caraway.cli import options
from caraway_core.errors import CarawayError

if TYPE_CHECKING:
    from caraway.client import Client
    from caraway.requests.parsing import Row
    from caraway.routes.refreshes import AccelerationStatus

_BAR_PAUSE_S = 0.5
_LINE_PAUSE_S = 5.0


class RefreshMode(StrEnum):
    """Which rows a refresh loads."""

    FULL = "full"
    APPEND = "append"


@options.connected
def refresh(
    client: "Client",
    name: Annotated[str, typer.Argument(metavar="NAME", help="An accelerated dataset.")],
    sql: Annotated[
        str | None,
        typer.Option(
            "--sql", metavar="SQL", help="SQL for this refresh only: SELECT ... FROM NAME."
        ),
    ] = None,
    mode: Annotated[
        RefreshMode | None,
        typer.Option("--mode", help="Load all rows, or append only newer ones."),
    ] = None,
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="Request the refresh and exit without waiting for it."),
    ] = False,
) -> None:
    """Refresh an accelerated dataset and wait until queries read the new version."""
    if no_wait:
        print(client.refresh_acceleration(name, refresh_sql=sql, refresh_mode=mode))
        return
    before = client.acceleration(name)
    client.refresh_acceleration(name, refresh_sql=sql, refresh_mode=mode)
    status = wait_for_refresh(client, name, before, sys.stderr)
    print(f"{name}: version {status.version}, {_amount(status.rows, status.bytes)}")


def wait_for_refresh(
    client: "Client", name: str, before: "Row", stderr: TextIO
) -> "AccelerationStatus":
    """Show the progress of the refresh just requested; return the status after it.

    Raises:
        CarawayError: the refresh failed.
    """
    # Imports httpx, which takes 0.3 s.
    from caraway.routes.refreshes import RefreshError

    show = _bar if stderr.isatty() else _lines
    pause_s = _BAR_PAUSE_S if stderr.isatty() else _LINE_PAUSE_S
    try:
        with closing(client.watch_refresh(name, before, pause_s)) as states:
            return show(name, states, stderr)
    except KeyboardInterrupt:
        print(f"the refresh of '{name}' continues on the server", file=stderr)
        raise typer.Exit(130) from None
    except RefreshError as error:
        raise CarawayError(f"refresh of '{name}' failed: {error.message}") from error


def _lines(
    name: str, states: Generator["AccelerationStatus", None, None], stderr: TextIO
) -> "AccelerationStatus":
    """Print a line for each change, as suits logs."""
    last = ""
    for state in states:
        line = _described(state)
        if line and line != last:
            print(f"{name}: {line}", file=stderr, flush=True)
        last = line
    return state


def _bar(
    name: str, states: Generator["AccelerationStatus", None, None], stderr: TextIO
) -> "AccelerationStatus":
    # rich takes 0.1 s to import, and only commands that wait need it.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        # A name may contain what rich would interpret as markup.
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[done]}"),
        console=Console(file=stderr),
        transient=True,
    )
    with bar:
        # The number of rows in the source is unknown, so the bar has no total and pulses.
        row = bar.add_task(name, total=None, done="")
        for state in states:
            if done := _described(state):
                bar.update(row, done=done)
    return state


def _described(state: "AccelerationStatus") -> str:
    """Describe the running refresh, or return "" if there is none."""
    if state.is_asked_again:
        return "queued behind the running refresh"
    if not state.is_refreshing:
        return ""
    if not state.loaded_rows:
        return "refreshing"
    rate = f", {state.loaded_rows_per_s:,.0f} rows/s" if state.loaded_rows_per_s else ""
    return f"refreshing: {_amount(state.loaded_rows, state.loaded_bytes)}{rate}"


def _amount(rows: int, size_bytes: int) -> str:
    return f"{rows:,} rows, {_size(size_bytes)}"


def _size(size_bytes: int) -> str:
    if size_bytes < 1000:
        return f"{size_bytes} bytes"
    size = float(size_bytes)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 999.95:
            return f"{size:,.1f} {unit}"
    return f"{size / 1000:,.1f} TB"
