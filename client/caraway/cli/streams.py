"""Input and output of the SQL commands: statements, parameters, and results."""

import sys
import uuid
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from caraway.terminal import parameters
from caraway_core.errors import CarawayError

Param = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="Value for :NAME in the query: JSON, or else a string. Repeatable.",
    ),
]
File = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="Read the query from a file; - is stdin."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", dir_okay=False, help="Write the rows to a file."),
]


def parse_params(texts: Sequence[str] | None) -> dict[str, object]:
    """Parse the values of --param. An invalid one is a usage error."""
    try:
        return dict(map(parameters.parse_parameter, texts or ()))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--param") from error


def read_query(query: str | None, file: Path | None) -> str | None:
    """Return the SQL to run, or None if none was given and standard input is a terminal."""
    if query is not None and file is not None:
        raise typer.BadParameter("pass QUERY or --file, not both")
    if query == "-" or file == Path("-"):
        return sys.stdin.read()
    if file is not None:
        return file.read_text(encoding="utf-8")
    if query is None and not sys.stdin.isatty():
        return sys.stdin.read()
    return query


def refuse_terminal(format: str, output: Path | None, *, is_binary: bool) -> None:
    """Raise a usage error if binary output would go to a terminal."""
    if is_binary and output is None and sys.stdout.isatty():
        raise typer.BadParameter(f"{format.capitalize()} is binary: use --output FILE or a pipe")


@contextmanager
def open_output(output: Path | None) -> Iterator[BinaryIO]:
    """Open standard output, or a file that gets its name once it is complete.

    Devices and pipes, such as /dev/null, are written to as they are. So is what a link leads to.
    """
    if output is None:
        yield sys.stdout.buffer
        return
    if output.exists() and (not output.is_file() or _is_opened(output)):
        with output.open("wb") as opened:
            yield opened
        return
    target = output.resolve()
    if not target.parent.is_dir():
        raise CarawayError(f"cannot write '{output}': there is no directory '{target.parent}'")
    # A name that nobody else has: a file of the user, or of another command, stays as it is.
    part = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as opened:
            yield opened
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _is_opened(output: Path) -> bool:
    """Return whether a path names a file that this process has open, such as /dev/stdout."""
    return output.is_symlink() and any(map(output.is_relative_to, ("/dev", "/proc")))


def write_result(chunks: Generator[bytes, None, None], to: BinaryIO, *, is_binary: bool) -> None:
    """Write a result as it arrives. Text output always ends with a line break."""
    last = b"\n"
    with closing(chunks):
        for chunk in chunks:
            to.write(chunk)
            to.flush()
            last = chunk[-1:] or last
    if last != b"\n" and not is_binary:
        to.write(b"\n")
        to.flush()
