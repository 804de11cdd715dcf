"""`caraway cluster`: run a complete cluster on this machine."""

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from caraway.cli import options, server_options
from caraway.cli.managing import groups
from caraway.cli.options import StatusFormat
from caraway.cli.server_options import address, memory_size
from caraway.cli.variables import setting
from caraway_core.loading import registry
from caraway_core.settings import ClusterOptions

DataDir = Annotated[
    Path,
    setting(
        "--data-dir DIR",
        "CARAWAY_CLUSTER_DIR",
        "Directory for the cluster's state and logs; one cluster per directory.",
    ),
]
DEFAULT_DIR = Path(".caraway/cluster")


def up(
    manifest: server_options.Manifest = Path("."),
    executors: Annotated[
        int, typer.Option("--executors", min=0, metavar="N", help="Number of executors.")
    ] = 2,
    cores: Annotated[
        int,
        typer.Option(
            "--cores",
            min=0,
            metavar="N",
            help="Cores per executor; 0 divides the machine's cores among them.",
        ),
    ] = 0,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="Memory per executor for statements; default: half the machine, divided evenly.",
        ),
    ] = None,
    http: server_options.Http = server_options.DEFAULT_HTTP,
    flight: server_options.Flight = server_options.DEFAULT_FLIGHT,
    metrics: server_options.Metrics = server_options.DEFAULT_METRICS,
    state: Annotated[
        str | None,
        setting(
            "--state URL",
            "CARAWAY_STATE",
            "redis://... URL of the state store; default: a file in --data-dir.",
        ),
    ] = None,
    drain_timeout: server_options.DrainTimeout = 30.0,
    parallel_reads: Annotated[
        bool,
        typer.Option(
            "--parallel-reads",
            help="Have executors serve Flight, for runtime.flight.parallel_reads.",
        ),
    ] = False,
    limits_file: server_options.LimitsFile = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Exit once the cluster is ready and leave it running.")
    ] = False,
    data_dir: DataDir = DEFAULT_DIR,
    log_format: server_options.LogFormatOption = "text",
) -> None:
    """Start a head, executors, and a scheduler that serves MANIFEST, on this machine."""
    cluster_options = ClusterOptions(
        manifest=manifest,
        executors=executors,
        http=address(http, "--http"),
        flight=address(flight, "--flight"),
        metrics=address(metrics, "--metrics"),
        data_dir=data_dir,
        cores=cores,
        memory_bytes=memory_size(memory, "--memory") or 0,
        drain_timeout_s=drain_timeout,
        parallel_reads=parallel_reads,
        limits_file=limits_file,
        state=state,
        detach=detach,
        log_format=log_format,
    )
    raise typer.Exit(_command("cluster up")(cluster_options))


def scale(
    executors: Annotated[int, typer.Argument(min=0, metavar="N", help="Number of executors.")],
    data_dir: DataDir = DEFAULT_DIR,
) -> None:
    """Change the number of executors and wait until done; removed executors drain first."""
    raise typer.Exit(_command("cluster scale")(data_dir, executors))


def status(
    format: options.StatusFormatOption = StatusFormat.TABLE,
    data_dir: DataDir = DEFAULT_DIR,
) -> None:
    """Show the processes of the cluster; exit with 0 if it is running, 1 if not."""
    found = _command("cluster status")(data_dir)
    if format is StatusFormat.JSON:
        print(json.dumps(asdict(found) if found else None))
    elif found is None:
        print(f"no cluster is running in '{data_dir}'; start one with `caraway cluster up`")
    else:
        # rich takes 0.1 s to import.
        from caraway.cli import tables

        rows = [{**asdict(each), "endpoints": _joined(each.endpoints)} for each in found.processes]
        columns = ("name", "state", "pid", "restarts", "address", "endpoints", "log")
        tables.print_table(rows, columns)
        sys.stdout.flush()
    raise typer.Exit(0 if found else 1)


def down(data_dir: DataDir = DEFAULT_DIR) -> None:
    """Stop the cluster: executors first, then the scheduler, then the head."""
    raise typer.Exit(_command("cluster down")(data_dir))


def build() -> typer.Typer:
    """Build the command group."""
    commands: dict[str, Callable[..., None]] = {
        "up": up,
        "scale": scale,
        "status": status,
        "down": down,
    }
    return groups.group("cluster", "Run a complete cluster on this machine.", commands)


def _joined(endpoints: dict[str, str]) -> str:
    return " ".join(f"{name}={address}" for name, address in endpoints.items() if address)


def _command(name: str) -> Callable[..., Any]:
    return functools.partial(registry.COMMANDS.build, name)
