"""A deployer that runs nothing."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from caraway_management.deployers.protocol import Instance, Wanted
from caraway_management.domain.deployments import Observed, Phase, Problem


@dataclass
class FakeDeployer:
    """Records its calls. Runtimes are ready at once, unless `phase` says otherwise."""

    running: dict[int, Wanted] = field(default_factory=dict)
    calls: list[tuple[str, int]] = field(default_factory=list)
    started: list[int] = field(default_factory=list)
    """The deployments whose runtimes were started, in order."""
    phase: Phase = Phase.READY
    problem: Problem | None = None
    strays: set[int] = field(default_factory=set)
    """Projects that have objects here which were not requested."""
    failure: Callable[[str], None] = lambda _call: None
    """Called before and after every call; may raise."""

    async def apply(self, wanted: Wanted) -> None:
        self.failure("before apply")
        self.calls.append(("apply", wanted.project_id))
        if wanted.is_paused:
            self.running.pop(wanted.project_id, None)
        else:
            before = self.running.get(wanted.project_id)
            if before is None or before.deployment_id != wanted.deployment_id:
                self.started.append(wanted.deployment_id)
            self.running[wanted.project_id] = wanted
        self.failure("after apply")

    async def observe(self, project_id: int, created: int | None = None) -> Observed:
        self.failure("before observe")
        wanted = self._find(project_id, created)
        if wanted is None:
            return Observed(Phase.ABSENT)
        if self.problem is not None:
            phase = Phase.STARTING if self.problem.code.is_retriable else Phase.FAILED
            return Observed(phase, wanted.deployment_id, self.problem)
        return Observed(
            self.phase, wanted.deployment_id, None,
            f"http://127.0.0.1:{8_000 + project_id}", f"grpc://127.0.0.1:{9_000 + project_id}",
        )  # fmt: skip

    async def remove(self, project_id: int, created: int | None = None) -> None:
        self.failure("before remove")
        self.calls.append(("remove", project_id))
        if self._find(project_id, created):
            del self.running[project_id]
        self.failure("after remove")

    async def instances(self, project_id: int, created: int | None = None) -> Sequence[Instance]:
        return [Instance("runtime-0", "running")] if self._find(project_id, created) else []

    async def logs(
        self, project_id: int, instance: str, tail: int, created: int | None = None
    ) -> Sequence[str] | None:
        return ["one", "two"][-tail:] if self._find(project_id, created) else None

    def _find(self, project_id: int, created: int | None) -> Wanted | None:
        wanted = self.running.get(project_id)
        return wanted if wanted and created in (None, wanted.created) else None

    async def run(self) -> None:
        """Do nothing."""

    async def project_ids(self) -> set[int]:
        return {*self.running, *self.strays}

    @property
    def is_watching(self) -> bool:
        return False

    async def changed(self) -> set[int]:
        return await asyncio.Future()
