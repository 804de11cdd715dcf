"""Keeps the password of the Redis off the command lines of Ray's processes.

Ray calls `take_password` within `ray start`, before it starts anything (`RAY_START_HOOK`). By
itself it would put the password into the arguments of its state server and of its raylet, which
every user of the machine can read. The state server can take it from its environment instead, and
the raylet does not need it.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

HOOK = f"{__name__}.take_password"
PASSWORD = "CARAWAY_REDIS_PASSWORD"
_FLAG = "--redis_password="
_FROM_ENVIRONMENT = "--fromenv=redis_password"
_OF_FLAG = "FLAGS_redis_password"
"""The place where the flags of the state server look for a value that `--fromenv` names."""

Start = Callable[..., Any]


def take_password(parameters: Any, _is_head: bool) -> None:
    """Give Ray the password of this process's environment, and keep it out of arguments."""
    from ray._private import services

    # The variable is not inherited by what Ray starts.
    password = os.environ.pop(PASSWORD, "")
    if password:
        parameters.redis_password = password
        services.start_raylet = _without_password(services.start_raylet)
        services.start_ray_process = _with_environment(services.start_ray_process)


def _without_password(start_raylet: Start) -> Start:
    def start(*arguments: Any, **named: Any) -> Any:
        return start_raylet(*arguments, **{**named, "redis_password": ""})

    return start


def _with_environment(start_process: Start) -> Start:
    def start(
        command: Sequence[str],
        *arguments: Any,
        env_updates: Mapping[str, str] | None = None,
        **named: Any,
    ) -> Any:
        shown, updates = hidden(command)
        env = {**(env_updates or {}), **updates}
        return start_process(shown, *arguments, env_updates=env, **named)

    return start


def hidden(command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Move the password from a command line of Ray into variables of its environment."""
    shown: list[str] = []
    updates: dict[str, str] = {}
    for argument in command:
        if argument.startswith(_FLAG):
            updates[_OF_FLAG] = argument.removeprefix(_FLAG)
            argument = _FROM_ENVIRONMENT
        shown.append(argument)
    return shown, updates
