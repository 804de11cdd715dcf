"""`caraway head`, `executor` and `scheduler`: start one process of a cluster."""

from pathlib import Path
from typing import Annotated

import typer

from caraway.cli import server_options
from caraway.cli.server_options import TOKEN_HELP, address, memory_size, with_run_options
from caraway.cli.variables import setting
from caraway_core.loading import registry
from caraway_core.settings import (
    ExecutorFlight,
    ExecutorOptions,
    HeadOptions,
    JoinOptions,
    RunOptions,
    SchedulerOptions,
)

DEFAULT_HEAD = "127.0.0.2:6390"
DEFAULT_TOKEN_FILE = Path(".caraway/head/token")
"""Where `caraway head` creates it by default."""

Head = Annotated[str, setting("--head HOST:PORT", "CARAWAY_HEAD", "Address of `caraway head`.")]
NodeIp = Annotated[
    str | None,
    setting(
        "--node-ip IP",
        "CARAWAY_NODE_IP",
        "IP address at which other processes reach this one; default: that of the host.",
    ),
]
TokenFile = Annotated[Path | None, setting("--token-file FILE", "CARAWAY_TOKEN_FILE", TOKEN_HELP)]
ObjectStore = Annotated[
    str | None,
    setting(
        "--object-store-memory SIZE",
        "CARAWAY_OBJECT_STORE_MEMORY",
        "Shared memory for rows sent between processes; default: a fifth of the memory.",
    ),
]


def head(
    listen: Annotated[
        str,
        setting(
            "--address HOST:PORT",
            "CARAWAY_HEAD",
            "Address of this host at which other processes reach the head.",
        ),
    ] = DEFAULT_HEAD,
    state: Annotated[
        str | None,
        setting(
            "--state URL",
            "CARAWAY_STATE",
            "redis://... URL for the head's state, which then survives the head.",
        ),
    ] = None,
    data_dir: server_options.DataDir = Path(".caraway/head"),
    token_file: TokenFile = None,
    log_format: server_options.LogFormatOption = "text",
    ready_fd: server_options.ReadyFd = None,
) -> None:
    """Start the head of a cluster and run it until Ctrl-C."""
    options = HeadOptions(
        address=address(listen, "--address"),
        data_dir=data_dir,
        token_file=token_file,
        state=state,
        log_format=log_format,
        ready_fd=ready_fd,
    )
    raise typer.Exit(registry.COMMANDS.build("head", options))


def executor(
    head: Head = DEFAULT_HEAD,
    node_ip: NodeIp = None,
    executor_id: Annotated[
        str | None, setting("--id ID", "CARAWAY_EXECUTOR_ID", "Name of the executor.")
    ] = None,
    cores: Annotated[
        int, setting("--cores N", "CARAWAY_CORES", "Number of cores to use; 0 means all.", min=0)
    ] = 0,
    memory: Annotated[
        str | None,
        setting(
            "--memory SIZE",
            "CARAWAY_MEMORY",
            "Memory for statements, such as 4GiB or 50%; default: half of the memory.",
        ),
    ] = None,
    object_store_memory: ObjectStore = None,
    metrics: Annotated[
        str | None,
        setting(
            "--metrics HOST:PORT",
            "CARAWAY_METRICS",
            "Address that serves /metrics, /health and /v1/ready; default: none.",
        ),
    ] = None,
    flight: Annotated[
        str | None,
        setting(
            "--flight HOST:PORT",
            "CARAWAY_EXECUTOR_FLIGHT",
            "Address at which clients fetch parts of answers; default: none.",
        ),
    ] = None,
    flight_advertised: Annotated[
        str | None,
        setting(
            "--flight-advertised HOST:PORT",
            "CARAWAY_EXECUTOR_FLIGHT_ADVERTISED",
            "Address by which clients reach --flight, if it is another one.",
        ),
    ] = None,
    flight_certificate: Annotated[
        Path | None,
        setting(
            "--flight-certificate FILE",
            "CARAWAY_EXECUTOR_FLIGHT_CERTIFICATE",
            "PEM certificate of --flight, which then uses TLS.",
        ),
    ] = None,
    flight_key: Annotated[
        Path | None,
        setting(
            "--flight-key FILE", "CARAWAY_EXECUTOR_FLIGHT_KEY", "PEM key of --flight-certificate."
        ),
    ] = None,
    flight_client_ca: Annotated[
        Path | None,
        setting(
            "--flight-client-ca FILE",
            "CARAWAY_EXECUTOR_FLIGHT_CLIENT_CA",
            "PEM authorities that must have signed the certificates of clients.",
        ),
    ] = None,
    drain_timeout: server_options.DrainTimeout = 30.0,
    data_dir: server_options.DataDir = Path(".caraway/executor"),
    token_file: TokenFile = None,
    log_format: server_options.LogFormatOption = "text",
    ready_fd: server_options.ReadyFd = None,
) -> None:
    """Start an executor that joins the cluster of a head, and serve until Ctrl-C."""
    options = ExecutorOptions(
        join=_join(head, node_ip, token_file, object_store_memory),
        data_dir=data_dir,
        executor_id=executor_id,
        cores=cores,
        memory_bytes=memory_size(memory, "--memory") or 0,
        metrics=address(metrics, "--metrics") if metrics else None,
        flight=_flight(flight, flight_advertised, flight_certificate, flight_key, flight_client_ca),
        drain_timeout_s=drain_timeout,
        log_format=log_format,
        ready_fd=ready_fd,
    )
    raise typer.Exit(registry.COMMANDS.build("executor", options))


@with_run_options(".caraway/scheduler")
def scheduler(
    options: RunOptions,
    head: Head = DEFAULT_HEAD,
    node_ip: NodeIp = None,
    scheduler_id: Annotated[
        str | None, setting("--id ID", "CARAWAY_SCHEDULER_ID", "Name of the scheduler.")
    ] = None,
    state: Annotated[
        str | None,
        setting(
            "--state URL",
            "CARAWAY_STATE",
            "redis://... URL shared by all schedulers; default: a file in --data-dir.",
        ),
    ] = None,
    object_store_memory: ObjectStore = None,
    token_file: TokenFile = None,
) -> None:
    """Start a scheduler that joins the cluster of a head, and serve MANIFEST."""
    joining = SchedulerOptions(
        join=_join(head, node_ip, token_file, object_store_memory),
        scheduler_id=scheduler_id,
        state=state,
    )
    raise typer.Exit(registry.COMMANDS.build("scheduler", options, joining))


def _flight(
    listen: str | None,
    advertised: str | None,
    certificate: Path | None,
    key: Path | None,
    client_ca: Path | None,
) -> ExecutorFlight | None:
    """Return where an executor serves parts of answers. Options without the others are errors."""
    if (certificate is None) != (key is None):
        raise typer.BadParameter("--flight-certificate and --flight-key need each other")
    if client_ca is not None and certificate is None:
        raise typer.BadParameter("--flight-client-ca needs --flight-certificate")
    if listen is None:
        if advertised or certificate:
            raise typer.BadParameter("--flight-advertised and --flight-certificate need --flight")
        return None
    return ExecutorFlight(
        address(listen, "--flight"),
        address(advertised, "--flight-advertised") if advertised else None,
        certificate,
        key,
        client_ca,
    )


def _join(
    head: str, node_ip: str | None, token_file: Path | None, object_store: str | None
) -> JoinOptions:
    return JoinOptions(
        head=address(head, "--head"),
        token_file=token_file or DEFAULT_TOKEN_FILE,
        node_ip=node_ip,
        object_store_bytes=memory_size(object_store, "--object-store-memory") or 0,
    )
