"""`caraway store`: start a chunk store."""

from pathlib import Path
from typing import Annotated

import typer

from caraway.cli import server_options
from caraway.cli.server_options import TOKEN_HELP, address, memory_size
from caraway.cli.variables import setting
from caraway_core.loading import registry
from caraway_core.settings import StoreOptions

DEFAULT_LISTEN = "127.0.0.1:8095"


def store(
    folder: Annotated[
        Path, setting("--dir DIR", "CARAWAY_STORE_DIR", "Directory for the chunks.")
    ] = Path(".caraway/store"),
    listen: Annotated[
        str, setting("--listen HOST:PORT", "CARAWAY_LISTEN", "Address to listen on.")
    ] = DEFAULT_LISTEN,
    token_file: Annotated[
        Path, setting("--token-file FILE", "CARAWAY_TOKEN_FILE", TOKEN_HELP)
    ] = Path(".caraway/head/token"),
    max_chunk: Annotated[
        str,
        setting(
            "--max-chunk SIZE",
            "CARAWAY_MAX_CHUNK",
            "Maximum size of a chunk; larger ones are rejected.",
        ),
    ] = "1GiB",
    max_connections: Annotated[
        int,
        setting(
            "--max-connections N",
            "CARAWAY_MAX_CONNECTIONS",
            "Maximum number of concurrent connections; more are rejected.",
            min=1,
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
