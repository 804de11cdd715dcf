"""A management service in a process of its own, which ends at the step that it is given.

Steps are counted where a kill makes a difference: before and after each commit, and before and
after each call of the deployer. The runtimes are a file, since they outlive the service.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management import composition
from caraway_management.deployers.protocol import NoDeployer, Wanted
from caraway_management.deployments import creating
from caraway_management.domain.deployments import Observed, Phase
from caraway_management.outbox import Worker
from caraway_management.sealing import keys
from caraway_management.sealing.keys import GivenKeys
from caraway_management.sealing.sealer import Sealer
from caraway_management.services import Services
from caraway_management.store import database
from caraway_management.store.database import Database
from caraway_management.store.tables import Deployment, OutboxEntry, Project
from tests.kit import management

KILLED = 9
_MOST_TURNS = 200


class Steps:
    """Counts the steps, and ends the process at one of them."""

    def __init__(self, last: int | None) -> None:
        self._left = last

    def __call__(self) -> None:
        if self._left is None:
            return
        if self._left == 0:
            os._exit(KILLED)
        self._left -= 1


class StepDatabase(Database):
    """A database whose commits are steps."""

    steps = Steps(None)

    @asynccontextmanager
    async def change(self) -> AsyncIterator[AsyncSession]:
        async with super().change() as session:
            yield session
            self.steps()
        self.steps()


class World(NoDeployer):
    """Runtimes in a file."""

    def __init__(self, file: Path, steps: Steps) -> None:
        self._file = file
        self._steps = steps

    def read(self) -> dict[str, Any]:
        if not self._file.exists():
            return {"started": [], "running": {}}
        found: dict[str, Any] = json.loads(self._file.read_text())
        return found

    async def apply(self, wanted: Wanted) -> None:
        self._steps()
        found, id_ = self.read(), str(wanted.project_id)
        if found["running"].get(id_) != wanted.deployment_id:
            found["started"].append(wanted.deployment_id)
            found["running"][id_] = wanted.deployment_id
            self._file.write_text(json.dumps(found))
        self._steps()

    async def observe(self, project_id: int, created: int | None = None) -> Observed:
        self._steps()
        running = self.read()["running"].get(str(project_id))
        if running is None:
            return Observed(Phase.ABSENT)
        return Observed(Phase.READY, running, None, "http://127.0.0.1:1", "grpc://127.0.0.1:2")


async def main(
    url: str,
    world: str,
    key: str,
    project: int,
    deployments: int,
    minute: int,
    kill_at: int | None,
) -> None:
    """Make sure that the project has `deployments` of them, and do the work that is due."""
    opened = StepDatabase(database.parse_url(url))
    steps = opened.steps = Steps(kill_at)
    clock = management.Clock()
    clock.advance(minutes=minute)
    services = Services(
        opened,
        Sealer(GivenKeys(keys.parse(key, "the test")), clock),
        clock,
        deployer=World(Path(world), steps),
    )
    async with opened.read() as session:
        present = len(list(await session.scalars(select(Deployment.id))))
    if present < deployments:
        # The client repeats a request that had no answer.
        async with opened.change() as session:
            row = await session.get_one(Project, project)
            await creating.create_deployment(session, clock(), row, "api", "test")
    worker = Worker(opened, clock, composition.handlers(services))
    for _ in range(_MOST_TURNS):
        if not await _left(opened):
            break
        await worker.run_once()
        clock.advance(seconds=1)
    await opened.close()


async def _left(opened: Database) -> int:
    async with opened.read() as session:
        return len(list(await session.scalars(select(OutboxEntry.id))))


def serve() -> None:
    """Run a service for each line of stdin, in a process of its own; answer with its exit code."""
    for line in sys.stdin:
        # Forked, since importing everything takes seconds. No thread runs yet.
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                asyncio.run(main(**json.loads(line)))
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve()
