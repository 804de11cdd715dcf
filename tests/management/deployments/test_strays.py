"""Runtimes and records that do not agree, as after the restore of an earlier database."""

from dataclasses import replace

import pytest

from caraway_core.errors import UnavailableError
from caraway_management.deployments import strays
from tests.kit import deployed_projects
from tests.kit.management import Installation


def test_a_record_without_a_runtime_is_deployed_and_a_runtime_without_a_record_is_reported(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    made = [deployed_projects.new_project(installation) for _ in range(3)]
    for project in made:
        project.deploy()
    installation.work()
    kept, lost, paused = (project.id for project in made)
    made[2].caller.post(f"{made[2].path}/pause")
    installation.work()
    del installation.deployer.running[lost]
    installation.deployer.strays = {900}
    installation.deployer.calls.clear()

    installation.run(strays.reconcile, installation.services)
    installation.work()
    assert installation.deployer.calls == [("apply", lost)]
    assert set(installation.deployer.running) == {kept, lost}
    [record] = [each for each in caplog.records if "does not know" in each.message]
    assert record.projects == [900]  # type: ignore[attr-defined]
    assert paused not in installation.deployer.running


def test_the_runtime_of_an_earlier_project_of_the_same_id_is_not_seen_and_not_removed(
    installation: Installation,
) -> None:
    project = deployed_projects.new_project(installation)
    project.deploy()
    installation.work()
    instances = f"{project.path}/instances"
    assert len(project.caller.get(instances).json()["instances"]) == 1
    running = installation.deployer.running
    running[project.id] = earlier = replace(running[project.id], created=1)
    assert project.caller.get(instances).json()["instances"] == []
    assert project.caller.get(f"{instances}/runtime-0/logs").status_code == 404
    deployment = project.deploy()
    running[project.id] = earlier = replace(earlier, deployment_id=deployment)
    # It is looked at while it cannot be applied yet.
    installation.deployer.failure = _refuse_to_apply
    installation.work()
    assert project.state(deployment)[0] == "in_progress"
    installation.deployer.failure = lambda _: None
    assert project.caller.delete(project.path).status_code == 204
    installation.clock.advance(minutes=1)
    installation.work()
    assert ("remove", project.id) in installation.deployer.calls
    assert running == {project.id: earlier}


def _refuse_to_apply(call: str) -> None:
    if call == "before apply":
        raise UnavailableError("away", 5)


def test_the_restore_of_an_equal_database_changes_nothing(installation: Installation) -> None:
    project = deployed_projects.new_project(installation)
    project.deploy()
    installation.work()
    installation.deployer.calls.clear()
    installation.run(strays.reconcile, installation.services)
    installation.work()
    assert installation.deployer.calls == []
