"""The service is killed at each step of a deployment; the next one finishes it."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.engine import URL

from caraway_management.domain.deployments import Status
from caraway_management.sealing import keys
from caraway_management.store.tables import Deployment, OutboxEntry, Project
from tests.kit import management, service_to_kill
from tests.kit.deployed_projects import MANIFEST
from tests.kit.management import Installation


@pytest.fixture
def prepared(database_url: URL) -> Iterator[tuple[Installation, int]]:
    """A project with a manifest, made through the API."""
    with management.installation(database_url) as made:
        user = made.add_user()
        made.add_org("acme", user)
        answer = made.sign_in(user).post("/v1/projects", {"name": "shop", "manifest": MANIFEST})
        yield made, answer.json()["id"]


@pytest.mark.full
def test_killed_at_any_step_nothing_is_lost_or_done_twice(
    prepared: tuple[Installation, int], database_url: URL, tmp_path: Path
) -> None:
    installation, project_id = prepared
    order: dict[str, object] = {
        "url": database_url.render_as_string(hide_password=False),
        "project": project_id,
        "key": keys.new_line(),
    }
    with _services() as run:
        for kill_at in range(100):
            world = tmp_path / f"world-{kill_at}.json"
            order |= {"world": str(world), "deployments": kill_at + 1, "minute": 2 * kill_at}
            code = run({**order, "kill_at": kill_at})
            if code == service_to_kill.KILLED:
                # The leases of the one that was killed have expired.
                code = run({**order, "minute": 2 * kill_at + 1, "kill_at": None})
                was_killed = True
            else:
                was_killed = False
            assert code == 0
            ids = installation.rows(select(Deployment.id).order_by(Deployment.id))
            assert len(ids) == kill_at + 1
            # It was started once, for the deployment that there is, and it runs.
            found = json.loads(world.read_text())
            assert found == {"started": ids[-1:], "running": {str(project_id): ids[-1]}}, kill_at
            assert set(installation.rows(select(Deployment.status))) == {Status.SUCCEEDED}
            assert installation.rows(select(Project.deployed_id)) == ids[-1:]
            assert installation.rows(select(OutboxEntry.id)) == []
            if not was_killed:
                break
    # Before and after each commit, and before and after each call of the deployer.
    assert 15 <= kill_at < 99


@contextlib.contextmanager
def _services() -> Iterator[Callable[[dict[str, object]], int]]:
    """Yield a function that runs a service until nothing is to do, or until it is killed."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.kit.service_to_kill"],
        cwd=Path(service_to_kill.__file__).parents[2], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip

        def run(order: dict[str, object]) -> int:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield run
