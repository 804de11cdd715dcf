"""Prints rows as a table on standard output."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from caraway.terminal import terminals

# Wide enough not to truncate cells: a program that reads the pipe needs complete values.
PIPE_WIDTH = 100_000

STATE_STYLES = {
    "ready": "green",
    "error": "red",
    "initializing": "yellow",
    "refreshing": "yellow",
    "disabled": "dim",
    "registered": "yellow",
    "draining": "yellow",
    "lost": "red",
    "refused": "red",
    "pending": "yellow",
    "running": "yellow",
    "succeeded": "green",
    "failed": "red",
    "cancelled": "dim",
    "closed": "dim",
}


def print_table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    """Print the named columns of the rows."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_WIDTH)
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(_cell(column, row.get(column)) for column in columns))
    console.print(table)


def _cell(column: str, content: object) -> Text:
    match content:
        case None:
            return Text("")
        case bool():
            return Text("yes" if content else "no")
    text = terminals.one_line(str(content))
    style = STATE_STYLES.get(text.lower(), "") if column in ("status", "state") else ""
    return Text(text, style=style)
