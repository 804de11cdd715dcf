"""Changes two command lines that `ray start` builds, before the processes start, and watches the
state server: its own if this is the head, and otherwise that of the cluster that the node joins.

Ray calls `prepare` in its own process (`RAY_START_HOOK`).

**Ports.** A raylet waits 15 s for a file with each port of its dashboard agent, and exits if one is
late. The time is not configurable. There is no dashboard, so the raylet is told that these ports
are not used. `ray start` has no option for this for all of the ports.

**Password.** By default Ray passes the Redis password in the arguments of its state server and its
raylet, where every user of the machine can read it. The state server can read it from its
environment instead, and the raylet does not need it.
"""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from caraway_core.ray_nodes import cluster_watch, gcs_watch

HOOK = f"{__name__}.prepare"
PASSWORD = "CARAWAY_REDIS_PASSWORD"
SIGN = "CARAWAY_HEAD_SIGN"
"""Names the file that the watch of a state server touches."""
_FLAG = "--redis_password="
_FROM_ENVIRONMENT = "--fromenv=redis_password"
_OF_FLAG = "FLAGS_redis_password"
"""The prefix of variables that the state server reads for flags in `--fromenv`."""
_RAYLET = "raylet"
_GCS = "gcs_server"
_KEY, _NAMESPACE = b"answered", b"caraway-head"
_NOT_IN_USE = (
    "--metrics_agent_port=-1",
    "--metrics_export_port=-1",
    "--dashboard_agent_listen_port=-1",
)

Start = Callable[..., Any]


def prepare(parameters: Any, is_head: bool) -> None:
    """Patch the functions with which `ray start` starts processes; runs in its process."""
    from ray._private import services
    from ray._private.node import Node

    services.start_ray_process = _with_ports(services.start_ray_process)
    # Processes that Ray starts do not inherit the variables.
    sign = os.environ.pop(SIGN, "")
    if is_head:
        services.start_ray_process = _with_watch(services.start_ray_process, Path(sign))
    else:
        Node._init_gcs_client = _with_cluster_watch(Node._init_gcs_client)  # type: ignore[method-assign]
    password = os.environ.pop(PASSWORD, "")
    if password:
        parameters.redis_password = password
        services.start_raylet = _without_password(services.start_raylet)
        services.start_ray_process = _with_environment(services.start_ray_process)


def _with_ports(start_process: Start) -> Start:
    def start(command: Sequence[str], *arguments: object, **named: object) -> Any:
        return start_process(without_agent_ports(command), *arguments, **named)

    return start


def without_agent_ports(command: Sequence[str]) -> list[str]:
    """Return the command line of a raylet without agent ports, and other commands unchanged."""
    # If a flag is repeated, the last one wins.
    return [*command, *(_NOT_IN_USE if Path(command[0]).name == _RAYLET else ())]


def _with_watch(start_process: Start, sign: Path) -> Start:
    def start(command: Sequence[str], *arguments: object, **named: object) -> Any:
        started = start_process(command, *arguments, **named)
        if Path(command[0]).name == _GCS:
            address, is_durable = watched(command)
            asking = partial(_asking, address)
            gcs_watch.begin(started.process, asking, sign.touch, is_durable=is_durable)
        return started

    return start


def watched(command: Sequence[str]) -> tuple[str, bool]:
    """Return the address in the command line of a state server, and whether it has a Redis."""
    flags = _flags(command)
    address = f"{flags['--node-ip-address']}:{flags['--gcs_server_port']}"
    return address, "--redis_address" in flags


def _flags(command: Sequence[str]) -> Mapping[str, str]:
    return dict(argument.split("=", 1) for argument in command[1:] if "=" in argument)


def _asking(address: str) -> gcs_watch.Ask:
    """Connect to a state server; the result reads a key, for which it asks its Redis."""
    from ray._raylet import GcsClient  # type: ignore[attr-defined]  # compiled

    host, _, port = address.rpartition(":")
    # A client waits long for a server that does not listen.
    socket.create_connection((host, int(port)), gcs_watch.ASK_S).close()
    client = GcsClient(address=address)
    return lambda: client.internal_kv_get(_KEY, _NAMESPACE, timeout=gcs_watch.ASK_S)


def _with_cluster_watch(connect: Callable[[Any], None]) -> Callable[[object], None]:
    """Watch the cluster from the moment at which the node knows its id.

    The start of the node takes seconds more, and a head that is replaced meanwhile refuses its
    calls, which Ray repeats for 40 s.
    """

    def connected(node: Any) -> None:
        connect(node)
        cluster_watch.begin(partial(_asking_for, node.gcs_address, node.cluster_id.hex()))

    return connected


def _asking_for(address: str, cluster_id: str) -> cluster_watch.Ask:
    """Return a function that sends the head a call for the cluster."""
    from ray._raylet import GcsClient  # type: ignore[attr-defined]  # compiled

    client = GcsClient(address=address, cluster_id=cluster_id)
    # The head answers it from memory, without its Redis.
    return partial(client.check_alive, [], timeout=cluster_watch.ASK_S)


def _without_password(start_raylet: Start) -> Start:
    def start(*arguments: object, **named: object) -> Any:
        return start_raylet(*arguments, **{**named, "redis_password": ""})

    return start


def _with_environment(start_process: Start) -> Start:
    def start(
        command: Sequence[str],
        *arguments: object,
        env_updates: Mapping[str, str] | None = None,
        **named: object,
    ) -> Any:
        shown, updates = hidden(command)
        env = {**(env_updates or {}), **updates}
        return start_process(shown, *arguments, env_updates=env, **named)

    return start


def hidden(command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Move the password from one of Ray's command lines to environment variables."""
    shown: list[str] = []
    updates: dict[str, str] = {}
    for argument in command:
        if argument.startswith(_FLAG):
            updates[_OF_FLAG] = argument.removeprefix(_FLAG)
            argument = _FROM_ENVIRONMENT
        shown.append(argument)
    return shown, updates
