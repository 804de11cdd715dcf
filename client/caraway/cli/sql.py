"""`caraway sql`: run statements and print their results, or open the interactive shell."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from caraway.cli import exporting, options, streams
from caraway.rows.formats import Format
from caraway_core.sqltext import explained, splitting

if TYPE_CHECKING:
    from caraway.client import Client


@options.connected_with_flight
def sql(
    client: "Client",
    query: Annotated[
        str | None,
        typer.Argument(metavar="QUERY", help="SQL, or - for standard input; default: the shell."),
    ] = None,
    format: Annotated[Format, typer.Option("--format", help="Format of the rows.")] = Format.TABLE,
    param: streams.Param = None,
    file: streams.File = None,
    output: streams.Output = None,
) -> None:
    """Run SQL on a runtime, or open an interactive shell."""
    values = streams.parse_params(param)
    text = streams.read_query(query, file)
    if text is None:
        raise typer.Exit(_interact(client, format))
    script = _script(text, format)
    streams.refuse_terminal(format, output, is_binary=format.is_binary)
    # The server writes text by itself, which needs no pyarrow here and begins at once.
    by_server = output is None and not format.is_binary and client.uses_http
    with streams.open_output(output) as sink:
        for statement in script:
            if by_server and format is Format.TABLE and _is_drawn(statement, values):
                sink.write(f"{_drawn(client, statement)}\n".encode())
            elif by_server:
                answer = client.sql_chunks(statement, values, format)
                streams.write_result(answer, sink, is_binary=False)
            else:
                exporting.export(client, statement, values, format, sink, output)


def _script(text: str, format: Format) -> Sequence[str]:
    script = splitting.split(text).all()
    if not script:
        raise typer.BadParameter("there is no statement to run")
    if len(script) > 1 and format.is_binary:
        raise typer.BadParameter(f"--format {format} takes one statement, since it is one file")
    return script


def _is_drawn(statement: str, values: Mapping[str, object]) -> bool:
    return not values and explained.parse(statement) is not None


def _drawn(client: "Client", statement: str) -> str:
    from caraway.shell import names, plans

    return plans.draw(names.LineRows(client).sql(statement))


def _interact(client: "Client", format: Format) -> int:
    # prompt_toolkit takes 0.5 s to import, and only the shell needs it.
    from caraway import shell

    if format.is_binary:
        raise typer.BadParameter(
            "the shell supports table, json, csv and ndjson", param_hint="--format"
        )
    state_home = os.environ.get("XDG_STATE_HOME", "")
    return shell.open_shell(client, format, shell.history_path(state_home, Path.home()))
