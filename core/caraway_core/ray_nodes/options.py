"""Builds the command line and the environment of a Ray node from its options."""

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from caraway_core.errors import NotInstalledError
from caraway_core.ids import ExecutorId
from caraway_core.ray_nodes import start_hook
from caraway_core.ray_nodes.redis import GcsStore
from caraway_core.settings import Address

NAMESPACE = "caraway"
MINIMUM_STORE_BYTES = 80 * 1024 * 1024
"""Ray refuses an object store below 75 MiB."""
_PREFIX = "executor:"

_LIVENESS = {
    # The head declares a node dead after this many checks in a row without an answer, and then the
    # node exits. A killed node refuses checks, so it is dead after 10 s. A silent one is dead after
    # 210 s, because then the head may have lost its network, and all nodes would exit. TCP doubles
    # its pauses, so after an outage of 100 s it may recover after 200 s only. Schedulers do not
    # wait for it: heartbeats find lost executors within 5 s.
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "20000",
    "RAY_health_check_failure_threshold": "10",
    # A process of the cluster exits when it cannot reach the head for this long. Kubernetes
    # replaces a pod on a lost machine after 5 to 6 minutes.
    "RAY_gcs_rpc_server_reconnect_timeout_s": "1800",
}
_QUIET = {
    "RAY_usage_stats_enabled": "0",
    # Workers started in advance are never used, because each node has one actor.
    "RAY_enable_worker_prestart": "0",
    "RAY_prestart_worker_first_driver": "0",
    # The history of calls, which is not used here.
    "RAY_task_events_report_interval_ms": "0",
    # Ray's memory monitor kills the largest process when the *machine* is short of memory,
    # whichever process caused it. The engine's memory limit bounds statements, and the cgroup
    # bounds the process.
    "RAY_memory_monitor_refresh_ms": "0",
    # Otherwise, if `uv run` started the driver, Ray starts its workers through uv as well.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
}


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """The options of one Ray node; a node without `joins` is the head, and `head` is its address.

    Ray chooses ports that are 0. If `node_ip` is None, the address of the host is used. Several
    nodes on one machine need a loopback address each. 127.0.0.1 does not work, because Ray replaces
    it.
    """

    head: Address
    joins: bool
    node_ip: str | None
    cores: int
    object_store_bytes: int
    folder: Path
    """The folder for Ray's output, and for its session unless the path is too long for sockets."""
    token_file: Path
    store: GcsStore | None = None
    node_manager_port: int = 0
    object_manager_port: int = 0
    worker_ports: tuple[int, int] = (0, 0)

    @property
    def sign(self) -> Path:
        """The file that the watch of a head's state server touches."""
        return self.folder / "watched"


_RAY = f"{__package__}.ray_start"
"""A program, which is not imported: it bars modules of Ray."""


def command(options: NodeOptions, session: Path, agent_port: int) -> list[str]:
    """Return the command line of a node that keeps its session in the given folder.

    The node's runtime environment agent listens on the port. Ray would wait 15 s for a port that
    the agent chooses, and give up on the node if the agent is later.
    """
    low, high = options.worker_ports
    place = ["--address", str(options.head)] if options.joins else _head(options.head)
    node_ip = options.node_ip if options.joins else options.head.host
    return [
        sys.executable, "-u", "-m", _RAY, "start", "--block", *place,
        *([f"--node-ip-address={node_ip}"] if node_ip else []),
        f"--num-cpus={options.cores}",
        f"--object-store-memory={max(options.object_store_bytes, MINIMUM_STORE_BYTES)}",
        f"--node-manager-port={options.node_manager_port}",
        f"--object-manager-port={options.object_manager_port}",
        f"--min-worker-port={low}", f"--max-worker-port={high}",
        f"--runtime-env-agent-port={agent_port}",
        "--dashboard-agent-listen-port=0", "--include-log-monitor=false",
        "--disable-usage-stats", f"--temp-dir={session}",
        "--log-style=record", "--log-color=false", *_redis_login(options.store),
    ]  # fmt: skip


def require() -> None:
    """Check that Ray is installed.

    Raises:
        NotInstalledError: Ray is not installed; the message names the extra.
    """
    if importlib.util.find_spec("ray") is None:
        raise NotInstalledError(
            "a cluster needs the package 'ray', which is not installed; "
            "install it with: pip install 'caraway[cluster]'"
        )


def _head(head: Address) -> list[str]:
    return ["--head", f"--port={head.port}", "--include-dashboard=false"]


def _redis_login(store: GcsStore | None) -> list[str]:
    # The password is passed in the environment, see `start_hook`.
    return [f"--redis-username={store.user}"] if store and store.user else []


def start_environment(options: NodeOptions) -> Mapping[str, str]:
    """Return the environment variables of the program that starts a node."""
    return {
        **environment(options.token_file),
        "RAY_START_HOOK": start_hook.HOOK,
        **({} if options.joins else {start_hook.SIGN: str(options.sign.absolute())}),
        **(options.store.environment() if options.store else {}),
    }


def environment(token_file: Path) -> Mapping[str, str]:
    """Return the environment variables of every process of a cluster, Ray's and ours."""
    return {
        **_LIVENESS,
        **_QUIET,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token_file.absolute()),
    }


def init_arguments(head: Address, node_ip: str | None) -> dict[str, Any]:
    """Return the arguments of `ray.init` for a process next to the node with that address."""
    place = {"_node_ip_address": node_ip} if node_ip else {}
    return {
        "address": str(head),
        "namespace": NAMESPACE,
        "log_to_driver": False,
        "logging_level": "ERROR",
        **place,
    }


def executor_name(executor_id: ExecutorId) -> str:
    """Return the name of an executor's actor."""
    return _PREFIX + executor_id


def executor_of(actor_name: str) -> ExecutorId | None:
    """Return the executor of an actor, or None if the actor is not an executor."""
    return ExecutorId(actor_name[len(_PREFIX) :]) if actor_name.startswith(_PREFIX) else None
