"""`caraway snapshots`: list the snapshots of accelerated datasets, and go back to one."""

import json
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from caraway.cli import options
from caraway.cli.options import StatusFormat

Dataset = Annotated[str, typer.Argument(metavar="NAME", help="An accelerated dataset.")]
SnapshotId = Annotated[
    int, typer.Argument(metavar="ID", min=0, help="The id of `caraway snapshots list`.")
]
_MOST_LISTED = 1000
_COLUMNS = ("snapshot_id", "time", "row_count", "size_bytes", "is_current")


def list_snapshots(
    name: Dataset,
    limit: Annotated[
        int,
        typer.Option("--limit", min=1, max=_MOST_LISTED, metavar="N", help="The most snapshots."),
    ] = 10,
    format: options.StatusFormatOption = StatusFormat.TABLE,
    endpoint: options.Endpoint = None,
    api_key: options.ApiKey = None,
    cacert: options.CaCert = None,
    profile: options.Profile = None,
) -> None:
    """List the last snapshots of a dataset, the oldest first."""
    with closing(options.connect(endpoint, api_key, cacert, profile)) as client:
        found = client.snapshots(name, limit=limit)
    if format is StatusFormat.JSON:
        print(json.dumps(found))
        return
    # rich takes 0.1 s to import.
    from caraway.cli import tables

    tables.print_table([_row(each) for each in found], _COLUMNS)


def show(
    name: Dataset,
    snapshot_id: SnapshotId,
    format: options.StatusFormatOption = StatusFormat.TABLE,
    endpoint: options.Endpoint = None,
    api_key: options.ApiKey = None,
    cacert: options.CaCert = None,
    profile: options.Profile = None,
) -> None:
    """Show a snapshot of a dataset."""
    with closing(options.connect(endpoint, api_key, cacert, profile)) as client:
        found = client.snapshot(name, snapshot_id)
    if format is StatusFormat.JSON:
        print(json.dumps(found))
        return
    from caraway.cli import tables

    tables.print_table([_row(found)], (*_COLUMNS, "location", "checksum"))


def use(
    name: Dataset,
    snapshot_id: SnapshotId,
    endpoint: options.Endpoint = None,
    api_key: options.ApiKey = None,
    cacert: options.CaCert = None,
    profile: options.Profile = None,
) -> None:
    """Replace the rows of a dataset by those of a snapshot."""
    with closing(options.connect(endpoint, api_key, cacert, profile)) as client:
        print(client.use_snapshot(name, snapshot_id))


def build() -> typer.Typer:
    """Build the command group."""
    group = typer.Typer(
        name="snapshots",
        help="List the snapshots of accelerated datasets, and go back to one.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for name, command in (("list", list_snapshots), ("show", show), ("use", use)):
        group.command(name)(command)
    return group


# Any: JSON.
def _row(document: Mapping[str, Any]) -> dict[str, Any]:
    made = datetime.fromtimestamp(int(document.get("timestamp_ms", 0)) / 1000, UTC)
    return {**document, "time": made.strftime("%Y-%m-%d %H:%M:%S UTC")}
