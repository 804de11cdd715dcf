"""Options shared by the commands that start a process of the runtime."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from caraway.cli.options import presented
from caraway.cli.variables import setting
from caraway_core.settings import Address, LogFormat, RunOptions

DEFAULT_HTTP = "127.0.0.1:8090"
DEFAULT_FLIGHT = "127.0.0.1:50051"
DEFAULT_METRICS = "127.0.0.1:9090"
TOKEN_HELP = "File with the cluster's secret, the same for all its processes."

Manifest = Annotated[
    Path, typer.Argument(metavar="MANIFEST", help="The manifest, or the directory that holds it.")
]
Http = Annotated[str, setting("--http HOST:PORT", "CARAWAY_HTTP", "Address of the HTTP API.")]
Flight = Annotated[
    str, setting("--flight HOST:PORT", "CARAWAY_FLIGHT", "Address of the Arrow Flight API.")
]
Metrics = Annotated[
    str, setting("--metrics HOST:PORT", "CARAWAY_METRICS", "Address of the Prometheus metrics.")
]
DataDir = Annotated[
    Path, setting("--data-dir DIR", "CARAWAY_DATA_DIR", "Directory for the state of the process.")
]
LogFormatOption = Annotated[
    LogFormat, setting("--log-format", "CARAWAY_LOG_FORMAT", "Format of log lines.")
]
Watch = Annotated[bool, setting("--watch", "CARAWAY_WATCH", "Reload the manifest when it changes.")]
LimitsFile = Annotated[
    Path | None,
    setting(
        "--limits-file FILE",
        "CARAWAY_LIMITS_FILE",
        "File with limits in addition to those of the manifest; reloaded when it changes.",
    ),
]
ShutdownDelay = Annotated[
    float,
    setting(
        "--shutdown-delay SECONDS",
        "CARAWAY_SHUTDOWN_DELAY",
        "How long to serve on after SIGTERM, while clients move to other schedulers.",
        min=0.0,
    ),
]
ReadyFd = Annotated[
    int | None,
    setting(
        "--ready-fd N",
        "CARAWAY_READY_FD",
        "File descriptor to write the bound addresses to once the process is up.",
        min=0,
    ),
]
DrainTimeout = Annotated[
    float,
    setting(
        "--drain-timeout SECONDS",
        "CARAWAY_DRAIN_TIMEOUT",
        "How long running statements may take to finish when an executor stops.",
        min=0.0,
    ),
]


def address(text: str, flag: str) -> Address:
    """Parse HOST:PORT. Anything else is a usage error."""
    try:
        return Address.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=flag) from error


def memory_size(text: str | None, flag: str) -> int | None:
    """Parse a size such as 4GiB or a share of the memory. Anything else is a usage error."""
    # Imports pydantic, which takes 0.1 s.
    from caraway_core.manifest.texts import memory

    try:
        return None if text is None else memory.limit_bytes(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=flag) from error


def with_run_options(
    default_data_dir: str,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of `caraway run` to a command, which receives them as RunOptions.

    The command's own options come between MANIFEST and the shared ones.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        shared = dict(inspect.signature(_run_options).parameters)
        shared["data_dir"] = shared["data_dir"].replace(default=Path(default_data_dir))
        _, *own = inspect.signature(command).parameters.values()
        manifest, *others = shared.values()
        parameters = [manifest, *own, *others]

        @functools.wraps(command)
        def with_options(**values: object) -> None:
            run_options = _run_options(**{name: values.pop(name) for name in shared})  # type: ignore[arg-type]
            command(run_options, **values)

        return presented(with_options, parameters)

    return decorate


def _run_options(
    manifest: Manifest = Path("."),
    http: Http = DEFAULT_HTTP,
    flight: Flight = DEFAULT_FLIGHT,
    metrics: Metrics = DEFAULT_METRICS,
    data_dir: DataDir = Path("."),
    log_format: LogFormatOption = "text",
    watch: Watch = False,
    limits_file: LimitsFile = None,
    shutdown_delay: ShutdownDelay = 0.0,
    ready_fd: ReadyFd = None,
) -> RunOptions:
    return RunOptions(
        manifest=manifest,
        http=address(http, "--http"),
        flight=address(flight, "--flight"),
        metrics=address(metrics, "--metrics"),
        data_dir=data_dir,
        log_format=log_format,
        watch=watch,
        limits_file=limits_file,
        shutdown_delay_s=shutdown_delay,
        ready_fd=ready_fd,
    )
