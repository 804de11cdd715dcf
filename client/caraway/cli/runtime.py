"""`caraway run` and `caraway validate`: hand the flags to the runtime's own commands."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from caraway_core import registry
from caraway_core.settings import Address, LogFormat, RunOptions

Manifest = Annotated[
    Path, typer.Argument(metavar="MANIFEST", help="The manifest, or the folder that holds it.")
]


def run(
    manifest: Manifest = Path("."),
    http: Annotated[
        str, typer.Option("--http", envvar="CARAWAY_HTTP", metavar="HOST:PORT", help="HTTP API.")
    ] = "127.0.0.1:8090",
    flight: Annotated[
        str,
        typer.Option(
            "--flight", envvar="CARAWAY_FLIGHT", metavar="HOST:PORT", help="Arrow Flight SQL."
        ),
    ] = "127.0.0.1:50051",
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics", envvar="CARAWAY_METRICS", metavar="HOST:PORT", help="Prometheus metrics."
        ),
    ] = "127.0.0.1:9090",
    data_dir: Annotated[
        Path,
        typer.Option(
            "--data-dir",
            envvar="CARAWAY_DATA_DIR",
            metavar="DIR",
            help="Where the runtime keeps its state.",
        ),
    ] = Path(".caraway"),
    log_format: Annotated[
        LogFormat,
        typer.Option("--log-format", envvar="CARAWAY_LOG_FORMAT", help="Form of log lines."),
    ] = "text",
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", envvar="CARAWAY_WATCH", help="Load the manifest again when it changes."
        ),
    ] = False,
    ready_fd: Annotated[
        int | None,
        typer.Option(
            "--ready-fd",
            envvar="CARAWAY_READY_FD",
            min=0,
            metavar="N",
            help="Descriptor that gets the bound addresses once the servers answer.",
        ),
    ] = None,
) -> None:
    """Start the runtime that MANIFEST describes, and serve until Ctrl-C."""
    options = RunOptions(
        manifest=manifest,
        http=_address(http, "--http"),
        flight=_address(flight, "--flight"),
        metrics=_address(metrics, "--metrics"),
        data_dir=data_dir,
        log_format=log_format,
        watch=watch,
        ready_fd=ready_fd,
    )
    start: Callable[[RunOptions], int] = registry.load("command", registry.COMMANDS, "run")
    raise typer.Exit(start(options))


def validate(manifest: Manifest = Path(".")) -> None:
    """Check MANIFEST without starting anything, and list every problem in it."""
    check: Callable[[Path], int] = registry.load("command", registry.COMMANDS, "validate")
    raise typer.Exit(check(manifest))


def _address(text: str, flag: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=flag) from error
