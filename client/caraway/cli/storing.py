"""`caraway store`: hands its flags to the store's own command."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from caraway.cli import runtime
from caraway.cli.options import address, size
from caraway.cli.processes import TOKEN_HELP
from caraway_core import registry
from caraway_core.settings import StoreOptions

DEFAULT_LISTEN = "127.0.0.1:8095"


def store(
    folder: Annotated[
        Path,
        typer.Option(
            "--dir", envvar="CARAWAY_STORE_DIR", metavar="DIR", help="Where the chunks are kept."
        ),
    ] = Path(".caraway/store"),
    listen: Annotated[
        str,
        typer.Option(
            "--listen", envvar="CARAWAY_LISTEN", metavar="HOST:PORT", help="Where it listens."
        ),
    ] = DEFAULT_LISTEN,
    token_file: Annotated[
        Path,
        typer.Option("--token-file", envvar="CARAWAY_TOKEN_FILE", metavar="FILE", help=TOKEN_HELP),
    ] = Path(".caraway/head/token"),
    max_chunk: Annotated[
        str,
        typer.Option(
            "--max-chunk",
            envvar="CARAWAY_MAX_CHUNK",
            metavar="SIZE",
            help="Larger chunks are refused.",
        ),
    ] = "1GiB",
    max_connections: Annotated[
        int,
        typer.Option(
            "--max-connections",
            envvar="CARAWAY_MAX_CONNECTIONS",
            min=1,
            metavar="N",
            help="More connections at once are refused.",
        ),
    ] = 1024,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Also serve /metrics, which needs no token.")
    ] = False,
    log_format: runtime.LogFormatOption = "text",
    ready_fd: runtime.ReadyFd = None,
) -> None:
    """Keep the results of a cluster in a folder that all its processes reach over HTTP."""
    options = StoreOptions(
        folder=folder,
        listen=address(listen, "--listen"),
        token_file=token_file,
        most_bytes=size(max_chunk, "--max-chunk") or 0,
        most_connections=max_connections,
        has_metrics=metrics,
        log_format=log_format,
        ready_fd=ready_fd,
    )
    start: Callable[[StoreOptions], int] = registry.COMMANDS.load("store")
    raise typer.Exit(start(options))
