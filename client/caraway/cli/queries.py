"""`caraway query`: submit queries that run in the background and fetch their results."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from caraway import progress
from caraway.cli import options, streams, waiting
from caraway.cli.managing import groups
from caraway.cli.options import StatusFormat
from caraway.rows.formats import ResultFormat
from caraway_core.sqltext import splitting

if TYPE_CHECKING:
    from caraway.client import Client

QueryId = Annotated[
    str, typer.Argument(metavar="ID", help="The id printed by `caraway query submit`.")
]


@options.connected
def submit(
    client: "Client",
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="SQL, or - for standard input.")
    ] = None,
    param: streams.Param = None,
    file: streams.File = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", min=0, metavar="SECONDS", help="Time limit; default: none."),
    ] = None,
    maximum_size: Annotated[
        str | None,
        typer.Option(
            "--maximum-size", metavar="SIZE", help="Size limit of the results; default: none."
        ),
    ] = None,
    idempotency_key: Annotated[
        str,
        typer.Option(
            "--idempotency-key",
            metavar="KEY",
            help="Submitting again with the same key returns the same query.",
        ),
    ] = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the query to finish and show its progress.")
    ] = False,
) -> None:
    """Submit a query and print its id."""
    values = streams.parse_params(param)
    sql = _statement(streams.read_query(query, file))
    size = _result_size(maximum_size)
    submitted = client.query(
        sql,
        values or None,
        timeout_seconds=timeout,
        maximum_size=size,
        idempotency_key=idempotency_key,
    )
    print(submitted.id, flush=True)
    if wait:
        waiting.wait_for_success(submitted, sys.stderr)
    print(waiting.how_to_fetch(submitted.id), file=sys.stderr)


@options.connected
def status(
    client: "Client",
    query_id: QueryId,
    wait: Annotated[
        float,
        typer.Option(
            "--wait", min=0, metavar="SECONDS", help="Wait up to this long for it to finish."
        ),
    ] = 0.0,
    format: options.StatusFormatOption = StatusFormat.TABLE,
) -> None:
    """Show the status of a query; exit with 1 if it failed or was cancelled."""
    query = client.open_query(query_id)
    state = query.wait(wait) if wait else query.status()
    if format is StatusFormat.JSON:
        print(json.dumps(state.document))
    else:
        row = {
            "query_id": query_id,
            "status": state.status,
            "progress": progress.describe(state),
            "error": f"{state.error_code}: {state.message}" if state.error_code else "",
        }
        _table([row], [name for name, content in row.items() if content])
    raise typer.Exit(1 if state.status in ("FAILED", "CANCELLED") else 0)


@options.connected
def results(
    client: "Client",
    query_id: QueryId,
    format: Annotated[
        ResultFormat, typer.Option("--format", help="Format of the rows.")
    ] = ResultFormat.TABLE,
    output: streams.Output = None,
) -> None:
    """Wait for a query to finish and fetch its rows."""
    streams.refuse_terminal(format, output, is_binary=format.is_binary)
    query = client.open_query(query_id)
    waiting.wait_for_success(query, sys.stderr)
    with streams.open_output(output) as sink:
        streams.write_result(query.chunks(format), sink, is_binary=format.is_binary)


@options.connected
def cancel(
    client: "Client",
    query_id: QueryId,
) -> None:
    """Cancel a query unless it has finished, and print its status."""
    print(client.open_query(query_id).cancel().status)


@options.connected
def list_queries(
    client: "Client",
    status: Annotated[
        str,
        typer.Option(
            "--status", metavar="STATUS", help="Only queries with this status, such as `running`."
        ),
    ] = "",
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="Maximum number of queries.")
    ] = 100,
    format: options.StatusFormatOption = StatusFormat.TABLE,
) -> None:
    """List your queries, newest first."""
    rows = client.list_queries(status, limit)
    if format is StatusFormat.JSON:
        print(json.dumps(rows))
    else:
        _table(rows, ["query_id", "status", "created_at", "sql_preview"])


def build() -> typer.Typer:
    """Build the command group."""
    commands = {
        "submit": submit,
        "status": status,
        "results": results,
        "cancel": cancel,
        "list": list_queries,
    }
    return groups.group("query", "Run queries in the background.", commands)


def _statement(text: str | None) -> str:
    if text is None:
        raise typer.BadParameter("pass QUERY, --file FILE, or - for standard input")
    script = splitting.split(text).all()
    if len(script) != 1:
        found = f"{len(script)} statements" if script else "no statement"
        raise typer.BadParameter(f"expected one statement, got {found}")
    return script[0]


def _result_size(text: str | None) -> int | None:
    # Imports pydantic, which takes 0.1 s.
    from caraway_core.manifest.texts import units

    try:
        return None if text is None else units.size_bytes(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--maximum-size") from error


def _table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    # rich takes 0.1 s to import.
    from caraway.cli import tables

    tables.print_table(rows, columns)
