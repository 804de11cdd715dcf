"""`caraway sql`: run statements and pass the answers through, or open the shell."""

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from caraway.cli import options, streams
from caraway.formats import Format
from caraway_core.sqltext import splitting

if TYPE_CHECKING:
    from caraway.client import Client


def sql(
    query: Annotated[
        str | None,
        typer.Argument(metavar="QUERY", help="SQL, or - for standard input; none: a shell."),
    ] = None,
    format: Annotated[Format, typer.Option("--format", help="Form of the rows.")] = Format.TABLE,
    param: streams.Param = None,
    file: streams.File = None,
    output: streams.Output = None,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    api_key: options.ApiKey = "",
    cacert: options.CaCert = None,
) -> None:
    """Run SQL on a runtime, or open an interactive shell."""
    values = streams.values(param)
    text = streams.text(query, file)
    with closing(options.connect(endpoint, api_key, cacert)) as client:
        if text is None:
            raise typer.Exit(_interact(client, format))
        script = _script(text, format)
        streams.refuse_terminal(format, output, is_binary=format.is_binary)
        with streams.sink(output) as sink:
            for statement in script:
                answer = client.sql_chunks(statement, values, format)
                streams.write(answer, sink, is_binary=format.is_binary)


def _script(text: str, format: Format) -> Sequence[str]:
    script = splitting.split(text).all()
    if not script:
        raise typer.BadParameter("there is no statement to run")
    if len(script) > 1 and format is Format.ARROW:
        raise typer.BadParameter("an Arrow stream holds the answer of one statement")
    return script


def _interact(client: "Client", format: Format) -> int:
    # prompt_toolkit takes 0.5 s to import, which a single query would pay as well.
    from caraway import shell

    if format is Format.ARROW:
        raise typer.BadParameter(
            "the shell shows table, json, csv or ndjson", param_hint="--format"
        )
    state_home = os.environ.get("XDG_STATE_HOME", "")
    return shell.open_shell(client, format, shell.history_path(state_home, Path.home()))
