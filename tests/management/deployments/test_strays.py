"""Runtimes and records that do not agree, as after the restore of an earlier database."""

import pytest

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


def test_the_restore_of_an_equal_database_changes_nothing(installation: Installation) -> None:
    project = deployed_projects.new_project(installation)
    project.deploy()
    installation.work()
    installation.deployer.calls.clear()
    installation.run(strays.reconcile, installation.services)
    installation.work()
    assert installation.deployer.calls == []
