"""The Ray driver of an executor: it deploys and monitors the actor."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray
from ray._raylet import Config  # type: ignore[attr-defined]  # compiled
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from caraway_core import ray_nodes
from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.fleet import Description
from caraway_core.protocols.wire import ActorStatus
from caraway_core.settings import Address
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.actor import CALLS_AT_ONCE, ExecutorActor
from caraway_executor.part_options import PartServing


class ActorFailedError(CarawayError):
    """The actor does not respond, or could not be created."""


class ActorKeeper:
    """Joins a Ray cluster next to a raylet, and deploys, calls and ends the executor's actor.

    Every method blocks, at most for the time given.

    Raises:
        ActorFailedError: from each method, if Ray or the actor fails or times out.
    """

    def __init__(self, executor_id: ExecutorId) -> None:
        self._name = ray_nodes.executor_name(executor_id)
        self._actor: Any = None
        self._described: Any = None

    def join(self, head: Address, node_ip: str | None, variables: Mapping[str, str]) -> None:
        """Connect to the Ray cluster of a head."""
        os.environ.update(variables)
        # Ray read its variables on import, so initialize its configuration again.
        Config.initialize("")
        try:
            ray.init(**ray_nodes.init_arguments(head, node_ip))
        except (RayError, ConnectionError, RuntimeError, ValueError, TimeoutError) as exc:
            raise ActorFailedError(f"cannot join the Ray cluster at {head}: {exc}") from exc

    def deploy(
        self,
        identity: Description,
        settings: EngineSettings,
        files: Path,
        token_file: Path,
        serving: PartServing | None = None,
    ) -> None:
        """Create the actor. Replaces an actor of the same name that an earlier process left.

        `files` is the directory for its copies of schedulers' files, and `token_file` has the
        token of the cluster; `serving` says where it serves parts of answers, if it does.
        """
        try:
            here = ray.get_runtime_context().get_node_id()
            self._end_namesake()
            options: dict[str, Any] = {"concurrency_groups": {"control": CALLS_AT_ONCE}}
            kind = ray.remote(**options)(ExecutorActor)
            self._actor = kind.options(
                name=self._name,
                namespace=ray_nodes.NAMESPACE,
                lifetime="detached",
                max_restarts=-1,
                max_concurrency=CALLS_AT_ONCE,
                num_cpus=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(here, soft=False),
            ).remote(identity, settings, files, token_file, serving)
            self._described = self._actor.describe.remote()
        except RayError as exc:
            raise ActorFailedError(f"the actor cannot be created: {exc}") from exc

    def described(self, wait_s: float) -> Description | None:
        """Return the first heartbeat of the actor, or None if it is not up by then."""
        try:
            described: Description = ray.get(self._described, timeout=wait_s)
            return described
        except GetTimeoutError:
            return None
        except RayError as exc:
            raise ActorFailedError(f"the actor cannot be created: {exc}") from exc

    def standing(self, wait_s: float) -> ActorStatus:
        """Return the state of the actor; see `ExecutorActor.standing`."""
        standing: ActorStatus = self._ask(self._actor.standing, wait_s)
        return standing

    def drain(self, wait_s: float) -> None:
        """Ask the actor to take no new work."""
        self._ask(self._actor.drain, wait_s)

    def end(self) -> None:
        """End the actor permanently."""
        if self._actor is not None:
            ray.kill(self._actor, no_restart=True)
            self._actor = None

    def leave(self) -> None:
        """Disconnect from Ray."""
        self._actor = self._described = None
        ray.shutdown()

    def _end_namesake(self) -> None:
        try:
            ray.kill(ray.get_actor(self._name, ray_nodes.NAMESPACE), no_restart=True)
        except ValueError:
            return

    def _ask(self, method: Any, wait_s: float) -> Any:
        try:
            return ray.get(method.remote(), timeout=wait_s)
        except RayError as exc:
            raise ActorFailedError(f"the actor does not respond: {exc}") from exc
