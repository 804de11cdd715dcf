"""The data directory of a cluster: lock, plan and status, also after a crash."""

import json
import os
from pathlib import Path

import pytest

from caraway_cluster.folder import ClusterFolder, LocalClusterStatus, ProcessStatus
from caraway_cluster.plan import ClusterPlan
from caraway_core.errors import CarawayError

PLAN = ClusterPlan("m.yaml", 2, 1, 1, 1, 1.0, "127.64.1", 20_000, "", "", "", None, "text")
SCHEDULER = ProcessStatus(
    "scheduler", "up", 12, "127.64.1.2", 0, "scheduler.log", {"http": "127.0.0.1:8090"}
)
STATUS = LocalClusterStatus(11, 2, [SCHEDULER])


@pytest.fixture
def folder(tmp_path: Path) -> ClusterFolder:
    return ClusterFolder(tmp_path / "cluster")


def test_a_directory_without_a_cluster_is_not_locked(folder: ClusterFolder) -> None:
    assert not folder.is_locked
    assert folder.status() is None


def test_only_one_supervisor_holds_the_lock(folder: ClusterFolder) -> None:
    with folder.lock():
        assert folder.is_locked
        with pytest.raises(CarawayError, match=r"already running in.*cluster down --data-dir"):
            with folder.lock():
                raise AssertionError("the lock was taken twice")
        assert folder.is_locked, "a failed attempt releases nothing"
    assert not folder.is_locked
    with folder.lock():
        assert folder.is_locked


def test_the_lock_is_released_after_an_error(folder: ClusterFolder) -> None:
    with pytest.raises(ZeroDivisionError), folder.lock():
        raise ZeroDivisionError
    assert not folder.is_locked


def test_an_unusable_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(CarawayError, match=r"cannot use the data directory.*--data-dir DIR"):
        with ClusterFolder(tmp_path / "file").lock():
            raise AssertionError("a file was locked")


def test_status_is_read_back_while_the_supervisor_runs(folder: ClusterFolder) -> None:
    with folder.lock():
        assert folder.status() is None, "nothing was written yet"
        folder.write_status(STATUS)
        assert folder.status() == STATUS
        assert STATUS.endpoints == {"http": "127.0.0.1:8090"}
    assert folder.status() is None


def test_status_left_by_a_killed_supervisor_is_ignored(folder: ClusterFolder) -> None:
    folder.path.mkdir()
    (folder.path / "lock").touch()
    folder.write_status(STATUS)

    assert folder.status() is None


def test_status_of_an_older_version_is_read(folder: ClusterFolder) -> None:
    with folder.lock():
        folder.write_status(STATUS)
        document = json.loads((folder.path / "status.json").read_text())
        document["keeper_pid"] = document.pop("supervisor_pid")
        (folder.path / "status.json").write_text(json.dumps(document))

        assert folder.status() == STATUS


def test_the_plan_is_readable_by_its_owner_only(folder: ClusterFolder) -> None:
    folder.path.mkdir()

    folder.write_plan(PLAN.scaled(3))

    assert folder.read_plan() == PLAN.scaled(3)
    assert [path.name for path in folder.path.iterdir()] == ["cluster.json"]
    assert (folder.path / "cluster.json").stat().st_mode & 0o777 == 0o600


def test_a_failed_write_keeps_the_old_plan(
    folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.path.mkdir()
    folder.write_plan(PLAN)

    def fail(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "chmod", fail)
    with pytest.raises(OSError, match="No space left"):
        folder.write_plan(PLAN.scaled(9))

    assert folder.read_plan() == PLAN
