"""`caraway run` and `caraway validate`: hand the flags to the runtime's own commands."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from caraway.cli.options import address
from caraway_core import registry
from caraway_core.settings import LogFormat, RunOptions

Manifest = Annotated[
    Path, typer.Argument(metavar="MANIFEST", help="The manifest, or the folder that holds it.")
]


DEFAULT_HTTP = "127.0.0.1:8090"
DEFAULT_FLIGHT = "127.0.0.1:50051"
DEFAULT_METRICS = "127.0.0.1:9090"

Http = Annotated[
    str, typer.Option("--http", envvar="CARAWAY_HTTP", metavar="HOST:PORT", help="HTTP API.")
]
Flight = Annotated[
    str,
    typer.Option(
        "--flight", envvar="CARAWAY_FLIGHT", metavar="HOST:PORT", help="Arrow Flight SQL."
    ),
]
Metrics = Annotated[
    str,
    typer.Option(
        "--metrics", envvar="CARAWAY_METRICS", metavar="HOST:PORT", help="Prometheus metrics."
    ),
]
DataDir = Annotated[
    Path,
    typer.Option(
        "--data-dir",
        envvar="CARAWAY_DATA_DIR",
        metavar="DIR",
        help="Where the runtime keeps its state.",
    ),
]
LogFormatOption = Annotated[
    LogFormat,
    typer.Option("--log-format", envvar="CARAWAY_LOG_FORMAT", help="Form of log lines."),
]
Watch = Annotated[
    bool,
    typer.Option(
        "--watch", envvar="CARAWAY_WATCH", help="Load the manifest again when it changes."
    ),
]
LimitsFile = Annotated[
    Path | None,
    typer.Option(
        "--limits-file",
        envvar="CARAWAY_LIMITS_FILE",
        metavar="FILE",
        help="Limits beside those of the manifest; read again when it changes.",
    ),
]
ReadyFd = Annotated[
    int | None,
    typer.Option(
        "--ready-fd",
        envvar="CARAWAY_READY_FD",
        min=0,
        metavar="N",
        help="Descriptor that gets the bound addresses once the servers answer.",
    ),
]


def run(
    manifest: Manifest = Path("."),
    http: Http = DEFAULT_HTTP,
    flight: Flight = DEFAULT_FLIGHT,
    metrics: Metrics = DEFAULT_METRICS,
    data_dir: DataDir = Path(".caraway"),
    log_format: LogFormatOption = "text",
    watch: Watch = False,
    limits_file: LimitsFile = None,
    ready_fd: ReadyFd = None,
) -> None:
    """Start the runtime that MANIFEST describes, and serve until Ctrl-C."""
    options = RunOptions(
        manifest=manifest,
        http=address(http, "--http"),
        flight=address(flight, "--flight"),
        metrics=address(metrics, "--metrics"),
        data_dir=data_dir,
        log_format=log_format,
        watch=watch,
        limits_file=limits_file,
        ready_fd=ready_fd,
    )
    start: Callable[[RunOptions], int] = registry.COMMANDS.load("run")
    raise typer.Exit(start(options))


def validate(manifest: Manifest = Path(".")) -> None:
    """Check MANIFEST without starting anything, and list every problem in it."""
    check: Callable[[Path], int] = registry.COMMANDS.load("validate")
    raise typer.Exit(check(manifest))
