"""`caraway refresh`: have an accelerated dataset loaded anew, and see how far that is."""

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
    from caraway.parsing import Row
    from caraway.refreshes import Standing

_BAR_PAUSE_S = 0.5
_LINE_PAUSE_S = 5.0


class Mode(StrEnum):
    """What is loaded."""

    FULL = "full"
    APPEND = "append"


def refresh(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An accelerated dataset.")],
    sql: Annotated[
        str | None,
        typer.Option("--sql", metavar="SQL", help="What to load this time: SELECT ... FROM NAME."),
    ] = None,
    mode: Annotated[
        Mode | None, typer.Option("--mode", help="Load everything, or what is newer.")
    ] = None,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Only ask for it, and print what the server says.")
    ] = False,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    api_key: options.ApiKey = "",
    cacert: options.CaCert = None,
) -> None:
    """Load an accelerated dataset anew, and wait until that is what queries read."""
    with closing(options.connect(endpoint, api_key, cacert)) as client:
        if no_wait:
            print(client.refresh(name, sql, mode))
            return
        before = client.acceleration(name)
        client.refresh(name, sql, mode)
        found = wait(client, name, before, sys.stderr)
    print(f"{name}: version {found.version}, {_amount(found.rows, found.bytes)}")


def wait(client: "Client", name: str, before: "Row", stderr: TextIO) -> "Standing":
    """Return how the dataset stands once the refresh that was asked for is over.

    Raises:
        CarawayError: it failed.
    """
    # Comes with httpx, which takes 0.3 s to import.
    from caraway.refreshes import RefreshError

    show = _bar if stderr.isatty() else _lines
    pause_s = _BAR_PAUSE_S if stderr.isatty() else _LINE_PAUSE_S
    try:
        with closing(client.watch_refresh(name, before, pause_s)) as looks:
            return show(name, looks, stderr)
    except KeyboardInterrupt:
        print(f"the refresh of '{name}' goes on", file=stderr)
        raise typer.Exit(130) from None
    except RefreshError as error:
        raise CarawayError(f"'{name}' is not refreshed: {error.message}") from error


def _lines(name: str, looks: Generator["Standing", None, None], stderr: TextIO) -> "Standing":
    """A line for each change, for logs."""
    last = ""
    for look in looks:
        line = _described(look)
        if line and line != last:
            print(f"{name}: {line}", file=stderr, flush=True)
        last = line
    return look


def _bar(name: str, looks: Generator["Standing", None, None], stderr: TextIO) -> "Standing":
    # rich takes 0.1 s to import, which commands that wait for nothing would pay as well.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        # Names may hold what rich would take for markup.
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[done]}"),
        console=Console(file=stderr),
        transient=True,
    )
    with bar:
        # Nobody knows how many rows the source will give: it pulses.
        row = bar.add_task(name, total=None, done="")
        for look in looks:
            if done := _described(look):
                bar.update(row, done=done)
    return look


def _described(look: "Standing") -> str:
    """What goes on, as a person would say it; "" if nothing does."""
    if look.is_asked_again:
        return "follows the refresh under way"
    if not look.is_refreshing:
        return ""
    if not look.loaded_bytes:
        return "refreshing"
    return f"refreshing: {_amount(look.loaded_rows, look.loaded_bytes)}"


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
