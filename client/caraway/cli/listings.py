"""`caraway datasets`, `models`, `workers` and others: list what a runtime has."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from caraway.cli import options
from caraway.cli.options import ListFormat

if TYPE_CHECKING:
    from caraway.client import Client


@dataclass(frozen=True, slots=True)
class ListingCommand:
    """A command that lists what a route of the runtime returns.

    With `states`, it takes `--status` and shows them for `each`.
    """

    name: str
    route: str
    help: str
    columns: tuple[str, ...]
    states: tuple[str, ...] = ()
    each: str = ""


LISTINGS = {
    listing.name: listing
    for listing in (
        ListingCommand("datasets", "datasets", "List the datasets.",
                ("name", "from", "acceleration_enabled"),
                ("status", "progress", "error_message"), "dataset"),
        ListingCommand("catalogs", "catalogs", "List the catalogs.", ("name", "from")),
        ListingCommand("models", "models", "List the models.", ("id", "owned_by"),
                ("status", "error_message"), "model"),
        ListingCommand("workers", "workers",
                "List the workers; those with `is_llm` can be named as a model.",
                ("name", "description", "is_llm")),
        ListingCommand("functions", "functions", "List the functions of the manifest.",
                ("signature", "kind", "description")),
        ListingCommand("executors", "cluster/executors",
                "List the executors with their state, and why one is not ready.",
                ("executor_id", "state", "address", "cores", "active_tasks", "reason")),
        ListingCommand("status", "status", "List the runtime's servers and whether each is up.",
                ("name", "endpoint", "status")),
    )
}  # fmt: skip


def command(name: str) -> Callable[..., None]:
    """Return the command of a listing."""
    listing = LISTINGS[name]

    def show(client: "Client", format: options.ListFormatOption = ListFormat.TABLE) -> None:
        _show(client, listing.route, {}, listing.columns, format)

    def show_with_status(
        client: "Client",
        status: Annotated[
            bool,
            typer.Option(
                "--status", help=f"Also show the status and error of each {listing.each}."
            ),
        ] = False,
        format: options.ListFormatOption = ListFormat.TABLE,
    ) -> None:
        columns = (*listing.columns, *(listing.states if status else ()))
        _show(client, listing.route, {"status": "true"} if status else {}, columns, format)

    made = show_with_status if listing.states else show
    made.__doc__ = listing.help
    return options.connected(made)


def _show(
    client: "Client",
    route: str,
    query: Mapping[str, str],
    columns: tuple[str, ...],
    format: ListFormat,
) -> None:
    # These import httpx and rich, which take 0.4 s.
    from caraway.cli import tables
    from caraway.rows.formats import Format

    if format is ListFormat.TABLE:
        tables.print_table(client.rows(route, query), columns)
    else:
        body = client.listing(route, query, Format(format.value))
        sys.stdout.write(body if body.endswith("\n") else body + "\n")
