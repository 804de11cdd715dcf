"""`caraway snapshots`: list the snapshots of accelerated datasets, and go back to one."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from caraway.cli import options
from caraway.cli.managing import groups
from caraway.cli.options import StatusFormat

if TYPE_CHECKING:
    from caraway.client import Client

Dataset = Annotated[str, typer.Argument(metavar="NAME", help="An accelerated dataset.")]
SnapshotId = Annotated[
    int, typer.Argument(metavar="ID", min=0, help="The id of `caraway snapshots list`.")
]
_MOST_LISTED = 1000
_COLUMNS = ("snapshot_id", "time", "row_count", "size_bytes", "is_current")


@options.connected
def list_snapshots(
    client: "Client",
    name: Dataset,
    limit: Annotated[
        int,
        typer.Option("--limit", min=1, max=_MOST_LISTED, metavar="N", help="The most snapshots."),
    ] = 10,
    format: options.StatusFormatOption = StatusFormat.TABLE,
) -> None:
    """List the last snapshots of a dataset, the oldest first."""
    rows = client.snapshots(name, limit=limit)
    if format is StatusFormat.JSON:
        print(json.dumps(rows))
        return
    # rich takes 0.1 s to import.
    from caraway.cli import tables

    tables.print_table([_row(each) for each in rows], _COLUMNS)


@options.connected
def show(
    client: "Client",
    name: Dataset,
    snapshot_id: SnapshotId,
    format: options.StatusFormatOption = StatusFormat.TABLE,
) -> None:
    """Show a snapshot of a dataset."""
    row = client.snapshot(name, snapshot_id)
    if format is StatusFormat.JSON:
        print(json.dumps(row))
        return
    from caraway.cli import tables

    tables.print_table([_row(row)], (*_COLUMNS, "location", "checksum"))


@options.connected
def use(
    client: "Client",
    name: Dataset,
    snapshot_id: SnapshotId,
) -> None:
    """Replace the rows of a dataset by those of a snapshot."""
    print(client.use_snapshot(name, snapshot_id))


def build() -> typer.Typer:
    """Build the command group."""
    commands = {"list": list_snapshots, "show": show, "use": use}
    return groups.group(
        "snapshots", "List the snapshots of accelerated datasets, and go back to one.", commands
    )


# Any: JSON.
def _row(document: Mapping[str, Any]) -> dict[str, object]:
    made = datetime.fromtimestamp(int(document.get("timestamp_ms", 0)) / 1000, UTC)
    return {**document, "time": made.strftime("%Y-%m-%d %H:%M:%S UTC")}
