"""`caraway query`: submit queries that run in the background and fetch their results."""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Annotated

import typer

from caraway.cli import options, streams, waiting
from caraway.cli.options import StatusFormat
from caraway.rows.formats import ResultFormat
from caraway.terminal import progress
from caraway_core.sqltext import splitting

QueryId = Annotated[
    str, typer.Argument(metavar="ID", help="The id printed by `caraway query submit`.")
]


def submit(
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
    endpoint: options.Endpoint = None,
    api_key: options.ApiKey = None,
    cacert: options.CaCert = None,
    profile: options.Profile = None,
) -> None:
    """Submit a query and print its id."""
    values = streams.parse_params(param)
    sql = _statement(streams.read_query(query, file))
    size = _result_size(maximum_size)
    with closing(options.connect(endpoint, api_key, cacert, profile)) as client:
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


def status(
    query_id: QueryId,
    wait: Annotated[
        float,
        typer.Option(
            "--wait", min=0, metavar="SECONDS", help="Wait up to this long for it to finish."
        ),
    ] = 0.0,
    format: options.StatusFormatOption = StatusFormat.TABLE,
    endpoint: options.Endpoint = None,
    api_key: options.ApiKey = None,
    cacert: options.CaCert = None,
    profile: options.Profile = None,
) -> None:
    """Show the status of a query; exit with 1 if it failed or was cancelled."""
    with closing(options.connect(endpoint, api_key, cacert, profile)) as client:
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


def results(
    query_id: QueryId,
    format: Annotated[
        ResultFormat, typer.Option("--format", help="Format of the rows.")
    ] = ResultFormat.TABLE,
    output: streams.Output = None,
    endpoint: options.Endpoint = None,
    api_key: options.ApiKey = None,
    cacert: options.CaCert = None,
    profile: options.Profile = None,
) -> None:
    """Wait for a query to finish and fetch its rows."""
    streams.refuse_terminal(format, output, is_binary=format.is_binary)
    with closing(options.connect(endpoint, api_key, cacert, profile)) as client:
        query = client.open_query(query_id)
        waiting.wait_for_success(query, sys.stderr)
        with streams.open_output(output) as sink:
            streams.write_result(query.chunks(format), sink, is_binary=format.is_binary)


def cancel(
    query_id: QueryId,
    endpoint: options.Endpoint = None,
    api_key: options.ApiKey = None,
    cacert: options.CaCert = None,
    profile: options.Profile = None,
) -> None:
    """Cancel a query unless it has finished, and print its status."""
    with closing(options.connect(endpoint, api_key, cacert, profile)) as client:
        print(client.open_query(query_id).cancel().status)


def list_queries(
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
    endpoint: options.Endpoint = None,
    api_key: options.ApiKey = None,
    cacert: options.CaCert = None,
    profile: options.Profile = None,
) -> None:
    """List your queries, newest first."""
    with closing(options.connect(endpoint, api_key, cacert, profile)) as client:
        found = client.list_queries(status, limit)
    if format is StatusFormat.JSON:
        print(json.dumps(found))
    else:
        _table(found, ["query_id", "status", "created_at", "sql_preview"])


def build() -> typer.Typer:
    """Build the command group."""
    group = typer.Typer(
        name="query",
        help="Run queries in the background.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for name, command in (
        ("submit", submit),
        ("status", status),
        ("results", results),
        ("cancel", cancel),
        ("list", list_queries),
    ):
        group.command(name)(command)
    return group


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
    from caraway_core.manifest import units

    try:
        return None if text is None else units.size_bytes(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--maximum-size") from error


def _table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    # rich takes 0.1 s to import.
    from caraway.cli import tables

    tables.print_table(rows, columns)
