"""`caraway cluster`: a whole cluster on this machine."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from caraway.cli import processes, runtime
from caraway.cli.options import address, size
from caraway_core import registry
from caraway_core.settings import ClusterOptions

DataDir = Annotated[
    Path,
    typer.Option(
        "--data-dir",
        envvar="CARAWAY_CLUSTER_DIR",
        metavar="DIR",
        help="Where the cluster keeps its state and its logs; one cluster a directory.",
    ),
]
DEFAULT_DIR = Path(".caraway/cluster")


class StatusFormat(StrEnum):
    """How the status is printed."""

    TABLE = "table"
    JSON = "json"


def up(
    manifest: runtime.Manifest = Path("."),
    executors: Annotated[
        int, typer.Option("--executors", min=0, metavar="N", help="How many executors.")
    ] = 2,
    cores: Annotated[
        int,
        typer.Option("--cores", min=0, metavar="N", help="Cores of each; 0 divides the machine."),
    ] = 0,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="Memory of each for statements; half the machine is divided, if not given.",
        ),
    ] = None,
    http: runtime.Http = runtime.DEFAULT_HTTP,
    flight: runtime.Flight = runtime.DEFAULT_FLIGHT,
    metrics: runtime.Metrics = runtime.DEFAULT_METRICS,
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            envvar="CARAWAY_STATE",
            metavar="URL",
            help="redis://... that keeps the state; a file in --data-dir, if not given.",
        ),
    ] = None,
    drain_timeout: processes.DrainTimeout = 30.0,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return once it is ready, and leave it running.")
    ] = False,
    data_dir: DataDir = DEFAULT_DIR,
    log_format: runtime.LogFormatOption = "text",
) -> None:
    """Start a head, a scheduler of MANIFEST and executors on this machine."""
    options = ClusterOptions(
        manifest=manifest,
        executors=executors,
        http=address(http, "--http"),
        flight=address(flight, "--flight"),
        metrics=address(metrics, "--metrics"),
        data_dir=data_dir,
        cores=cores,
        memory_bytes=size(memory, "--memory") or 0,
        drain_timeout_s=drain_timeout,
        state=state,
        detach=detach,
        log_format=log_format,
    )
    raise typer.Exit(_command("cluster up")(options))


def scale(
    executors: Annotated[int, typer.Argument(min=0, metavar="N", help="How many executors.")],
    data_dir: DataDir = DEFAULT_DIR,
) -> None:
    """Change how many executors there are, and wait for it; those that go drain first."""
    raise typer.Exit(_command("cluster scale")(data_dir, executors))


def status(
    format: Annotated[
        StatusFormat, typer.Option("--format", help="How to print it.")
    ] = StatusFormat.TABLE,
    data_dir: DataDir = DEFAULT_DIR,
) -> None:
    """Show the processes of the cluster: exit code 0 if it runs, 1 if not."""
    found = _command("cluster status")(data_dir)
    if format is StatusFormat.JSON:
        print(json.dumps(asdict(found) if found else None))
    elif found is None:
        print(f"no cluster runs in '{data_dir}'; start one with `caraway cluster up`")
    else:
        # rich takes 0.1 s to import.
        from caraway.cli import tables

        rows = [{**asdict(each), "endpoints": _joined(each.endpoints)} for each in found.processes]
        columns = ("name", "state", "pid", "restarts", "address", "endpoints", "log")
        tables.show(rows, columns)
        sys.stdout.flush()
    raise typer.Exit(0 if found else 1)


def down(data_dir: DataDir = DEFAULT_DIR) -> None:
    """End the cluster, in order."""
    raise typer.Exit(_command("cluster down")(data_dir))


def build() -> typer.Typer:
    """The group of commands."""
    group = typer.Typer(
        name="cluster",
        help="Run a whole cluster on this machine.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for name, command in (("up", up), ("scale", scale), ("status", status), ("down", down)):
        group.command(name)(command)
    return group


def _joined(endpoints: dict[str, str]) -> str:
    return " ".join(f"{name}={at}" for name, at in endpoints.items() if at)


def _command(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = registry.COMMANDS.load(name)
    return found
