"""What goes into commands and comes out of them: SQL, its values, and the bytes of answers."""

import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from caraway import parameters

Param = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="Value of a :NAME in the query; typed like JSON, otherwise a string. Repeatable.",
    ),
]
File = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="Read the query from a file; - is stdin."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Write the answer to a file."),
]


def values(texts: Sequence[str] | None) -> dict[str, object]:
    """Read the values of placeholders; what is none is a usage error."""
    try:
        return dict(map(parameters.parse, texts or ()))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--param") from error


def text(query: str | None, file: Path | None) -> str | None:
    """The SQL to run; None if none was given, and there is a person to ask for it."""
    if query is not None and file is not None:
        raise typer.BadParameter("give a QUERY or --file, not both")
    if query == "-" or file == Path("-"):
        return sys.stdin.read()
    if file is not None:
        return file.read_text(encoding="utf-8")
    if query is None and not sys.stdin.isatty():
        return sys.stdin.read()
    return query


def refuse_terminal(form: str, output: Path | None, *, is_binary: bool) -> None:
    """Raise a usage error where bytes would go to a terminal."""
    if is_binary and output is None and sys.stdout.isatty():
        raise typer.BadParameter(f"{form.capitalize()} is binary: use --output FILE, or a pipe")


@contextmanager
def sink(output: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears under its name once it is whole."""
    if output is None:
        yield sys.stdout.buffer
        return
    part = output.with_name(f"{output.name}.part")
    try:
        with part.open("wb") as opened:
            yield opened
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)


def write(chunks: Generator[bytes, None, None], to: BinaryIO, *, is_binary: bool) -> None:
    """Pass an answer through as it arrives; text ends with a line end."""
    last = b"\n"
    with closing(chunks):
        for chunk in chunks:
            to.write(chunk)
            to.flush()
            last = chunk[-1:] or last
    if last != b"\n" and not is_binary:
        to.write(b"\n")
        to.flush()
