"""`caraway store`: start a chunk store."""

from pathlib import Path
from typing import Annotated

import typer

from caraway.cli import server_options
from caraway.cli.server_options import TOKEN_HELP, address, memory_size
from caraway_core.loading import registry
from caraway_core.settings import StoreOptions

DEFAULT_LISTEN = "127.0.0.1:8095"


def store(
    folder: Annotated[
        Path,
        typer.Option(
            "--dir", envvar="CARAWAY_STORE_DIR", metavar="DIR", help="Directory for the chunks."
        ),
    ] = Path(".caraway/store"),
    listen: Annotated[
        str,
        typer.Option(
            "--listen", envvar="CARAWAY_LISTEN", metavar="HOST:PORT", help="Address to listen on."
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
            help="Maximum size of a chunk; larger ones are rejected.",
        ),
    ] = "1GiB",
    max_connections: Annotated[
        int,
        typer.Option(
            "--max-connections",
            envvar="CARAWAY_MAX_CONNECTIONS",
            min=1,
            metavar="N",
            help="Maximum number of concurrent connections; more are rejected.",
        ),
    ] = 1024,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Also serve /metrics, which requires no token.")
    ] = False,
    log_format: server_options.LogFormatOption = "text",
    ready_fd: server_options.ReadyFd = None,
) -> None:
    """Store the chunks of a cluster in a directory and serve them to its processes over HTTP."""
    options = StoreOptions(
        folder=folder,
        listen=address(listen, "--listen"),
        token_file=token_file,
        most_bytes=memory_size(max_chunk, "--max-chunk") or 0,
        most_connections=max_connections,
        has_metrics=metrics,
        log_format=log_format,
        ready_fd=ready_fd,
    )
    raise typer.Exit(registry.COMMANDS.build("store", options))
