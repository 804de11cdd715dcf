"""`caraway query`: submit a query, go away, and come back for its rows."""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from enum import StrEnum
from typing import Annotated

import typer

from caraway.cli import options, streams, waiting
from caraway.formats import ResultFormat
from caraway_core.sqltext import splitting

QueryId = Annotated[
    str, typer.Argument(metavar="ID", help="The id that `caraway query submit` printed.")
]


class Form(StrEnum):
    """How a state or a list is printed."""

    TABLE = "table"
    JSON = "json"


FormOption = Annotated[Form, typer.Option("--format", help="How to print it.")]


def submit(
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="SQL, or - for standard input.")
    ] = None,
    param: streams.Param = None,
    file: streams.File = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout", min=0, metavar="SECONDS", help="How long it may take; else any time."
        ),
    ] = None,
    maximum_size: Annotated[
        str | None,
        typer.Option("--maximum-size", metavar="SIZE", help="How large its answer may be."),
    ] = None,
    idempotency_key: Annotated[
        str,
        typer.Option(
            "--idempotency-key", metavar="KEY", help="The same key gives the same query again."
        ),
    ] = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for its end, and show how far it is.")
    ] = False,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    api_key: options.ApiKey = "",
    cacert: options.CaCert = None,
) -> None:
    """Submit a query, print its id, and leave it running."""
    values = streams.values(param)
    sql = _statement(streams.text(query, file))
    size = _size(maximum_size)
    with closing(options.connect(endpoint, api_key, cacert)) as client:
        submitted = client.query(
            sql,
            values or None,
            timeout_seconds=timeout,
            maximum_size=size,
            idempotency_key=idempotency_key,
        )
        print(submitted.id, flush=True)
        if wait:
            waiting.succeed(submitted, sys.stderr)
    print(waiting.how_to_fetch(submitted.id), file=sys.stderr)


def status(
    query_id: QueryId,
    wait: Annotated[
        float,
        typer.Option("--wait", min=0, metavar="SECONDS", help="Wait this long for its end."),
    ] = 0.0,
    format: FormOption = Form.TABLE,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    api_key: options.ApiKey = "",
    cacert: options.CaCert = None,
) -> None:
    """Tell how far a query is: exit code 1 if it failed or was cancelled."""
    with closing(options.connect(endpoint, api_key, cacert)) as client:
        query = client.open_query(query_id)
        state = query.wait(wait) if wait else query.status()
    if format is Form.JSON:
        print(json.dumps(state.document))
    else:
        row = {
            "query_id": query_id,
            "status": state.status,
            "progress": waiting.described(state),
            "error": f"{state.error_code}: {state.message}" if state.error_code else "",
        }
        _table([row], [name for name, content in row.items() if content])
    raise typer.Exit(1 if state.status in ("FAILED", "CANCELLED") else 0)


def results(
    query_id: QueryId,
    format: Annotated[
        ResultFormat, typer.Option("--format", help="Form of the rows.")
    ] = ResultFormat.TABLE,
    output: streams.Output = None,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    api_key: options.ApiKey = "",
    cacert: options.CaCert = None,
) -> None:
    """Fetch the rows of a query; waits for its end first."""
    streams.refuse_terminal(format, output, is_binary=format.is_binary)
    with closing(options.connect(endpoint, api_key, cacert)) as client:
        query = client.open_query(query_id)
        waiting.succeed(query, sys.stderr)
        with streams.sink(output) as sink:
            streams.write(query.chunks(format), sink, is_binary=format.is_binary)


def cancel(
    query_id: QueryId,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    api_key: options.ApiKey = "",
    cacert: options.CaCert = None,
) -> None:
    """Stop a query, unless it is over, and print how it then stands."""
    with closing(options.connect(endpoint, api_key, cacert)) as client:
        print(client.open_query(query_id).cancel().status)


def list_queries(
    status: Annotated[
        str, typer.Option("--status", metavar="STATUS", help="Only these, such as `running`.")
    ] = "",
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="At most so many.")
    ] = 100,
    format: FormOption = Form.TABLE,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    api_key: options.ApiKey = "",
    cacert: options.CaCert = None,
) -> None:
    """List your queries, the newest first."""
    with closing(options.connect(endpoint, api_key, cacert)) as client:
        found = client.queries(status, limit)
    if format is Form.JSON:
        print(json.dumps(found))
    else:
        _table(found, ["query_id", "status", "created_at", "sql_preview"])


def build() -> typer.Typer:
    """The group of commands."""
    group = typer.Typer(
        name="query",
        help="Run queries that go on when you go away.",
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
        raise typer.BadParameter("give a QUERY, --file FILE, or - for standard input")
    script = splitting.split(text).all()
    if len(script) != 1:
        found = f"{len(script)} statements" if script else "no statement"
        raise typer.BadParameter(f"there is {found}; submit one")
    return script[0]


def _size(text: str | None) -> int | None:
    # Comes with pydantic, which takes 0.1 s to import.
    from caraway_core.manifest import units

    try:
        return None if text is None else units.size_bytes(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--maximum-size") from error


def _table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    # rich takes 0.1 s to import.
    from caraway.cli import tables

    tables.show(rows, columns)
