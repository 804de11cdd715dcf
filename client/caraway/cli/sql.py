"""`caraway sql`: run statements and pass the answers through, or open the shell."""

import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from caraway import parameters, statements
from caraway.cli import options
from caraway.formats import Format

if TYPE_CHECKING:
    from caraway.client import Client


def sql(
    query: Annotated[
        str | None,
        typer.Argument(metavar="QUERY", help="SQL, or - for standard input; none: a shell."),
    ] = None,
    format: Annotated[Format, typer.Option("--format", help="Form of the rows.")] = Format.TABLE,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="NAME=VALUE",
            help="Value of a :NAME in the query; typed like JSON, otherwise a string. Repeatable.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="Read the query from a file; - is stdin."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write the answer to a file."),
    ] = None,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    api_key: options.ApiKey = "",
    cacert: options.CaCert = None,
) -> None:
    """Run SQL on a runtime, or open an interactive shell."""
    values = _parameters(param or [])
    text = _text(query, file)
    with closing(options.connect(endpoint, api_key, cacert)) as client:
        if text is None:
            raise typer.Exit(_interact(client, format))
        script = _script(text, format)
        _refuse_terminal(format, output)
        with _sink(output) as sink:
            for statement in script:
                _write(client.sql_chunks(statement, values, format), sink, format)


def _parameters(texts: Sequence[str]) -> dict[str, object]:
    try:
        return dict(map(parameters.parse, texts))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--param") from error


def _text(query: str | None, file: Path | None) -> str | None:
    """The SQL to run; None asks for the shell."""
    if query is not None and file is not None:
        raise typer.BadParameter("give a QUERY or --file, not both")
    if query == "-" or file == Path("-"):
        return sys.stdin.read()
    if file is not None:
        return file.read_text(encoding="utf-8")
    if query is None and not sys.stdin.isatty():
        return sys.stdin.read()
    return query


def _script(text: str, format: Format) -> Sequence[str]:
    script = statements.split(text).all()
    if not script:
        raise typer.BadParameter("there is no statement to run")
    if len(script) > 1 and format is Format.ARROW:
        raise typer.BadParameter("an Arrow stream holds the answer of one statement")
    return script


def _refuse_terminal(format: Format, output: Path | None) -> None:
    if format is Format.ARROW and output is None and sys.stdout.isatty():
        raise typer.BadParameter("Arrow is binary: use --output FILE, or a pipe")


@contextmanager
def _sink(output: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears under its name once it is whole."""
    if output is None:
        yield sys.stdout.buffer
        return
    part = output.with_name(f"{output.name}.part")
    try:
        with part.open("wb") as sink:
            yield sink
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)


def _write(chunks: Generator[bytes, None, None], sink: BinaryIO, format: Format) -> None:
    last = b"\n"
    with closing(chunks):
        for chunk in chunks:
            sink.write(chunk)
            sink.flush()
            last = chunk[-1:] or last
    if last != b"\n" and format is not Format.ARROW:
        sink.write(b"\n")
        sink.flush()


def _interact(client: "Client", format: Format) -> int:
    # prompt_toolkit takes 0.5 s to import, which a single query would pay as well.
    from caraway import shell

    if format is Format.ARROW:
        raise typer.BadParameter(
            "the shell shows table, json, csv or ndjson", param_hint="--format"
        )
    state_home = os.environ.get("XDG_STATE_HOME", "")
    return shell.open_shell(client, format, shell.history_path(state_home, Path.home()))
