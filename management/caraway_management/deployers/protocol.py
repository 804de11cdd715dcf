"""The protocol of deployers, which bring runtimes to a desired state."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from caraway_core.errors import CarawayError, UnavailableError
from caraway_management.domain.deployments import Observed


@dataclass(frozen=True, slots=True)
class RuntimeKey:
    """An API key of a project's runtime."""

    number: int
    value: str = field(repr=False)
    access: str = "rw"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The desired runtime of a project."""

    project_id: int
    org_id: int
    org: str
    """The handle of the organization."""
    name: str
    deployment_id: int
    """A runtime of another deployment is replaced. One of this deployment goes on."""
    manifest: str
    """The YAML text, as its user wrote it. It is not trusted."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The snapshot of the project's config: image, replicas, resources; see `domain.configs`."""
    tags: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The values that the manifest refers to as `${secrets:NAME}`."""
    api_keys: Sequence[RuntimeKey] = ()
    """Changed keys reach the runtime within 10 s, without a restart."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """The limits of the plan, in the form of `GET /v1/limits`. They change without a restart."""
    region: str | None = None
    cluster_name: str | None = None
    is_paused: bool = False
    """True if the runtime is stopped; its data stay."""
    created: int = 0
    """The mark of the project; see `Deployer`."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A process or pod of a project's runtime."""

    name: str
    status: str
    started_at: datetime | None = None


class Deployer(Protocol):
    """Makes runtimes of projects, and says how they are.

    Every method may be called again after a failure at any point, with the same effect. They
    return within seconds: what takes longer is seen by `observe`. An UnavailableError means that
    what a deployer works with is away, and that the caller tries again later.

    After the restore of an earlier database, a new project may have the id of one whose runtime is
    still there. `created` tells them apart: see `domain.deployments.mark`. The runtime of another
    project is left alone, and is not seen. None takes the runtime of any project of that id.
    """

    async def apply(self, wanted: Wanted) -> None:
        """Make the runtime of a project so, or end it if the project is paused.

        Raises:
            RejectedError: it can never run here, or another project has its place.
        """

    async def observe(self, project_id: int, created: int | None = None) -> Observed:
        """Return the observed state of the runtime of a project."""

    async def remove(self, project_id: int, created: int | None = None) -> None:
        """Remove the runtime of a project and its data."""

    async def project_ids(self) -> set[int]:
        """Return the projects that runtimes or data are here of."""

    async def instances(self, project_id: int, created: int | None = None) -> Sequence[Instance]:
        """Return the processes or pods of the runtime of a project."""

    async def logs(
        self, project_id: int, instance: str, tail: int, created: int | None = None
    ) -> Sequence[str] | None:
        """Return the last lines of an instance; None if there is no such instance."""

    async def run(self) -> None:
        """Do what has to be done all the time, until cancelled."""

    @property
    def is_watching(self) -> bool:
        """True if `changed` names every deployment whose runtime has changed."""

    async def changed(self) -> set[int]:
        """Wait until runtimes have changed, and return their deployments. May wait for ever."""


class RejectedError(CarawayError):
    """The desired runtime can never run. The message is for the user: no secrets, no paths."""


class NoDeployer:
    """The deployer of a service that runs nothing, such as that of tests of other parts."""

    async def apply(self, wanted: Wanted) -> None:
        """Refuse it."""
        raise _no_deployer()

    async def observe(self, project_id: int, created: int | None = None) -> Observed:
        """Refuse it."""
        raise _no_deployer()

    async def remove(self, project_id: int, created: int | None = None) -> None:
        """Refuse it."""
        raise _no_deployer()

    async def project_ids(self) -> set[int]:
        """Return none."""
        return set()

    async def instances(self, project_id: int, created: int | None = None) -> Sequence[Instance]:
        """Return none."""
        return ()

    async def logs(
        self, project_id: int, instance: str, tail: int, created: int | None = None
    ) -> Sequence[str] | None:
        """Return none."""
        return None

    async def run(self) -> None:
        """Do nothing."""

    @property
    def is_watching(self) -> bool:
        """False: this deployer has no runtimes that change."""
        return False

    async def changed(self) -> set[int]:
        """Wait for ever."""
        return await asyncio.Future()


def taken() -> RejectedError:
    """Return the refusal of a project whose place something else has."""
    return RejectedError(
        "the place that the project would run in exists already and belongs to something else; "
        "ask the administrator of the installation to run `caraway management strays`"
    )


def _no_deployer() -> UnavailableError:
    return UnavailableError("this service has no deployer", 60)
