"""`caraway head`, `executor` and `scheduler`: the processes of a cluster, each in its own place."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from caraway.cli import runtime
from caraway.cli.options import address, size
from caraway_core import registry
from caraway_core.settings import (
    ExecutorOptions,
    HeadOptions,
    JoinOptions,
    RunOptions,
    SchedulerOptions,
)

TOKEN_HELP = "File with the cluster's secret, the same for all its processes."
Head = Annotated[
    str,
    typer.Option(
        "--head", envvar="CARAWAY_HEAD", metavar="HOST:PORT", help="Where `caraway head` listens."
    ),
]
NodeIp = Annotated[
    str | None,
    typer.Option(
        "--node-ip",
        envvar="CARAWAY_NODE_IP",
        metavar="IP",
        help="Address under which the others reach this process; the host's, if not given.",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", envvar="CARAWAY_TOKEN_FILE", metavar="FILE", help=TOKEN_HELP),
]
ObjectStore = Annotated[
    str | None,
    typer.Option(
        "--object-store-memory",
        envvar="CARAWAY_OBJECT_STORE_MEMORY",
        metavar="SIZE",
        help="Shared memory for rows that cross between processes; a fifth, if not given.",
    ),
]
DrainTimeout = Annotated[
    float,
    typer.Option(
        "--drain-timeout",
        envvar="CARAWAY_DRAIN_TIMEOUT",
        min=0.0,
        metavar="SECONDS",
        help="How long statements under way may take once an executor stops.",
    ),
]
DEFAULT_HEAD = "127.0.0.2:6390"


def head(
    listen: Annotated[
        str,
        typer.Option(
            "--address",
            envvar="CARAWAY_HEAD",
            metavar="HOST:PORT",
            help="Address of this host under which the others reach the head.",
        ),
    ] = DEFAULT_HEAD,
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            envvar="CARAWAY_STATE",
            metavar="URL",
            help="redis://... that keeps the head's state, so that it survives the head.",
        ),
    ] = None,
    data_dir: runtime.DataDir = Path(".caraway/head"),
    token_file: TokenFile = None,
    log_format: runtime.LogFormatOption = "text",
    ready_fd: runtime.ReadyFd = None,
) -> None:
    """Start the head of a cluster, and keep it until Ctrl-C."""
    options = HeadOptions(
        address=address(listen, "--address"),
        data_dir=data_dir,
        token_file=token_file,
        state=state,
        log_format=log_format,
        ready_fd=ready_fd,
    )
    start: Callable[[HeadOptions], int] = registry.COMMANDS.load("head")
    raise typer.Exit(start(options))


def executor(
    head: Head = DEFAULT_HEAD,
    node_ip: NodeIp = None,
    executor_id: Annotated[
        str | None,
        typer.Option("--id", envvar="CARAWAY_EXECUTOR_ID", metavar="ID", help="Its name."),
    ] = None,
    cores: Annotated[
        int,
        typer.Option(
            "--cores", envvar="CARAWAY_CORES", min=0, metavar="N", help="Cores to use; 0 is all."
        ),
    ] = 0,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            envvar="CARAWAY_MEMORY",
            metavar="SIZE",
            help="Memory for statements, like 4GiB or 50%; half of what there is, if not given.",
        ),
    ] = None,
    object_store_memory: ObjectStore = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            envvar="CARAWAY_METRICS",
            metavar="HOST:PORT",
            help="Where to serve /metrics, /health and /v1/ready; nowhere, if not given.",
        ),
    ] = None,
    drain_timeout: DrainTimeout = 30.0,
    data_dir: runtime.DataDir = Path(".caraway/executor"),
    token_file: TokenFile = None,
    log_format: runtime.LogFormatOption = "text",
    ready_fd: runtime.ReadyFd = None,
) -> None:
    """Start an executor of the cluster whose head is given, and serve until Ctrl-C."""
    options = ExecutorOptions(
        join=_join(head, node_ip, token_file, object_store_memory),
        data_dir=data_dir,
        executor_id=executor_id,
        cores=cores,
        memory_bytes=size(memory, "--memory") or 0,
        metrics=address(metrics, "--metrics") if metrics else None,
        drain_timeout_s=drain_timeout,
        log_format=log_format,
        ready_fd=ready_fd,
    )
    start: Callable[[ExecutorOptions], int] = registry.COMMANDS.load("executor")
    raise typer.Exit(start(options))


def scheduler(
    manifest: runtime.Manifest = Path("."),
    head: Head = DEFAULT_HEAD,
    node_ip: NodeIp = None,
    scheduler_id: Annotated[
        str | None,
        typer.Option("--id", envvar="CARAWAY_SCHEDULER_ID", metavar="ID", help="Its name."),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            envvar="CARAWAY_STATE",
            metavar="URL",
            help="redis://... that all schedulers share; a file in --data-dir, if not given.",
        ),
    ] = None,
    object_store_memory: ObjectStore = None,
    token_file: TokenFile = None,
    http: runtime.Http = runtime.DEFAULT_HTTP,
    flight: runtime.Flight = runtime.DEFAULT_FLIGHT,
    metrics: runtime.Metrics = runtime.DEFAULT_METRICS,
    data_dir: runtime.DataDir = Path(".caraway/scheduler"),
    log_format: runtime.LogFormatOption = "text",
    watch: runtime.Watch = False,
    limits_file: runtime.LimitsFile = None,
    ready_fd: runtime.ReadyFd = None,
) -> None:
    """Start a scheduler of the cluster whose head is given: serve what MANIFEST describes."""
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
    joining = SchedulerOptions(
        join=_join(head, node_ip, token_file, object_store_memory),
        scheduler_id=scheduler_id,
        state=state,
    )
    start: Callable[[RunOptions, SchedulerOptions], int] = registry.COMMANDS.load("scheduler")
    raise typer.Exit(start(options, joining))


def _join(
    head: str, node_ip: str | None, token_file: Path | None, object_store: str | None
) -> JoinOptions:
    return JoinOptions(
        head=address(head, "--head"),
        # Where `caraway head` makes it, if nobody said anything else.
        token_file=token_file or Path(".caraway/head/token"),
        node_ip=node_ip,
        object_store_bytes=size(object_store, "--object-store-memory") or 0,
    )
