import threading
from datetime import timedelta
from typing import Any

import pytest

from caraway_management.domain.deployments import Code, Phase, Problem
from caraway_management.domain.scopes import Role
from caraway_management.projects import manifests
from tests.kit.deployed_projects import MANIFEST, DeployedProject, new_project, shortage
from tests.kit.management import BEGAN, Installation


@pytest.fixture
def project(installation: Installation) -> DeployedProject:
    return new_project(installation)


def test_a_deployment_is_queued_begun_and_succeeds(
    installation: Installation, project: DeployedProject
) -> None:
    body = {"branch": "main", "commit_sha": "abc", "commit_message": "First", "replicas": 2}
    answer = project.caller.post(f"{project.path}/deployments", body)
    assert answer.status_code == 202
    made = answer.json()
    assert made | body == made
    assert (made["status"], made["started_at"], made["error_code"]) == ("queued", None, None)
    assert (made["creation_source"], made["rollback_of"]) == ("api", None)
    installation.deployer.phase = Phase.STARTING
    installation.work()
    assert project.state(made["id"]) == ("in_progress", None)
    installation.deployer.phase = Phase.READY
    installation.clock.advance(seconds=5)
    installation.work()
    done = project.deployment(made["id"])
    assert done["status"] == "succeeded"
    assert done["started_at"] == BEGAN.isoformat()
    assert done["finished_at"] == (BEGAN + timedelta(seconds=5)).isoformat()
    wanted = installation.deployer.running[project.id]
    assert (wanted.deployment_id, wanted.manifest, wanted.org) == (
        made["id"],
        MANIFEST,
        project.org,
    )
    assert wanted.config["replicas"] == 2
    assert wanted.limits["replicas"] == 10
    shown = project.caller.get(project.path).json()
    assert shown["endpoint"] == f"http://127.0.0.1:{8_000 + project.id}"
    assert shown["flight_endpoint"] == f"grpc://127.0.0.1:{9_000 + project.id}"


def test_the_log_has_every_state(installation: Installation, project: DeployedProject) -> None:
    installation.deployer.problem = shortage()
    id_ = project.deploy()
    installation.work()
    installation.clock.advance(seconds=30)
    installation.deployer.problem = None
    installation.work()
    path = f"{project.path}/deployments/{id_}/logs"
    lines = project.caller.get(path).json()["logs"]
    assert [(line["level"], line["message"]) for line in lines] == [
        ("info", "queued"),
        ("info", "in_progress"),
        ("warning", "insufficient_cpu: there is too little"),
        ("info", "succeeded"),
    ]
    assert {line["source"] for line in lines} == {"deployment"}
    assert project.caller.get(f"{path}?limit=1").json()["logs"] == lines[-1:]
    since = {"since": (BEGAN + timedelta(seconds=1)).isoformat()}
    assert project.caller.get(path, params=since).json()["logs"] == lines[-1:]
    assert project.caller.get(path, params={"since": "soon"}).status_code == 400


@pytest.mark.parametrize("code", [code for code in Code if code.is_retriable])
def test_a_shortage_is_shown_and_no_age_fails_it(
    installation: Installation, project: DeployedProject, code: Code
) -> None:
    installation.deployer.problem = shortage(code)
    id_ = project.deploy()
    for _ in range(20):
        installation.work()
        installation.clock.advance(minutes=3)
    assert project.state(id_) == ("in_progress", code)
    # After 15 minutes, its objects are applied again.
    assert installation.deployer.calls.count(("apply", project.id)) > 10
    assert installation.deployer.started == [id_]
    installation.deployer.problem = None
    installation.work()
    assert project.deployment(id_)["error_message"] is None
    assert project.state(id_) == ("succeeded", None)


@pytest.mark.parametrize("code", [code for code in Code if not code.is_retriable])
def test_a_failed_deployment_leaves_the_last_one_running(
    installation: Installation, project: DeployedProject, code: Code
) -> None:
    good = project.deploy()
    installation.work()
    bad = project.deploy()
    installation.deployer.problem = Problem(code, "it cannot be")
    assert installation.run(installation.worker.run_once) == 1
    assert installation.run(installation.worker.run_once) == 1
    installation.deployer.problem = None
    installation.work()
    assert project.state(bad) == ("failed", code)
    assert project.deployment(bad)["error_message"] == "it cannot be"
    assert installation.deployer.running[project.id].deployment_id == good
    assert installation.deployer.started == [good, bad, good]


def test_one_deployment_at_a_time(installation: Installation, project: DeployedProject) -> None:
    installation.deployer.phase = Phase.STARTING
    first = project.deploy()
    for _ in range(2):
        refused = project.caller.post(f"{project.path}/deployments", {})
        assert refused.status_code == 409
        assert refused.json()["code"] == "deployment_in_progress"
        installation.work()
    installation.deployer.phase = Phase.READY
    installation.clock.advance(seconds=1)
    installation.work()
    assert project.state(first) == ("succeeded", None)
    assert project.deploy() > first


def test_of_many_requests_at_once_one_deploys(
    installation: Installation, project: DeployedProject
) -> None:
    statuses: list[int] = []

    def post() -> None:
        statuses.append(project.caller.post(f"{project.path}/deployments", {}).status_code)

    threads = [threading.Thread(target=post) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [202] + [409] * 7


def test_a_deployment_is_a_snapshot_and_a_rollback_takes_it_again(
    installation: Installation, project: DeployedProject
) -> None:
    first = project.deploy(replicas=3, commit_sha="abc")
    changed = MANIFEST + "datasets: []\n"
    project.caller.put(project.path, {"manifest": changed})
    installation.work()
    assert installation.deployer.running[project.id].manifest == MANIFEST
    second = project.deploy()
    installation.work()
    assert installation.deployer.running[project.id].manifest == changed
    third = project.deploy(target_deployment_id=first)
    installation.work()
    wanted = installation.deployer.running[project.id]
    assert (wanted.deployment_id, wanted.manifest) == (third, MANIFEST)
    shown = project.deployment(third)
    assert (shown["rollback_of"], shown["replicas"], shown["commit_sha"]) == (first, 3, "abc")
    assert shown["creation_source"] == "rollback"
    listed = project.caller.get(f"{project.path}/deployments").json()["deployments"]
    assert [each["id"] for each in listed] == [third, second, first]


def test_what_cannot_be_deployed_is_refused(
    installation: Installation, project: DeployedProject
) -> None:
    path = f"{project.path}/deployments"
    installation.deployer.problem = Problem(Code.UNABLE_TO_START, "no")
    failed = project.deploy()
    installation.work()
    empty = project.caller.post("/v1/projects", {"name": "empty"}).json()["id"]
    table: list[tuple[str, dict[str, Any], int, str | None]] = [
        (f"/v1/projects/{empty}/deployments", {}, 400, "manifest_missing"),
        (path, {"target_deployment_id": failed}, 400, None),
        (path, {"target_deployment_id": 10**9}, 404, None),
        (path, {"target_deployment_id": failed, "replicas": 2}, 400, None),
        (path, {"replicas": 0}, 400, None),
        (path, {"replicas": 11}, 400, None),
        (path, {"image_tag": "a b"}, 400, None),
        (path, {"channel": "other"}, 400, None),
        (path, {"status": "succeeded"}, 400, None),
        (path, {"commit_message": "a\x00b"}, 400, None),
        ("/v1/projects/999999/deployments", {}, 404, None),
    ]
    for route, body, status, code in table:
        answer = project.caller.post(route, body)
        assert (answer.status_code, answer.json().get("code")) == (status, code), (route, body)
    for query in ("limit=0", "limit=101", "status=other"):
        assert project.caller.get(f"{path}?{query}").status_code == 400, query


def test_lists_by_status_and_page(installation: Installation, project: DeployedProject) -> None:
    ids = []
    for _ in range(3):
        ids.append(project.deploy())
        installation.work()
    ids.append(project.deploy())
    path = f"/v1/apps/{project.id}/deployments"

    def listed(query: str) -> list[int]:
        found = project.caller.get(f"{path}?{query}").json()["deployments"]
        return [each["id"] for each in found]

    assert listed("status=succeeded&limit=2") == [ids[2], ids[1]]
    assert listed("status=queued") == [ids[3]]
    assert listed("limit=1&offset=3") == [ids[0]]
    assert listed("status=failed") == []


def test_strangers_and_viewers(installation: Installation, project: DeployedProject) -> None:
    id_ = project.deploy()
    other = new_project(installation)
    for path in ("", f"/{id_}", f"/{id_}/logs"):
        route = f"{project.path}/deployments{path}"
        assert other.caller.get(route).status_code == 404, route
    # Also an id of another project of the same organization.
    mine = other.deploy()
    sibling = other.caller.post("/v1/projects", {"name": "sibling"}).json()["id"]
    assert other.caller.get(f"/v1/projects/{sibling}/deployments/{mine}").status_code == 404
    assert other.caller.post(f"{project.path}/deployments", {}).status_code == 404
    limited = installation.sign_in(installation.add_user(), "deployments:read")
    assert limited.post(f"{project.path}/deployments", {}).status_code in (403, 404)


def test_a_viewer_reads_but_does_not_deploy(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("viewed", owner)
    made = installation.sign_in(owner).post("/v1/projects", {"name": "shop", "manifest": MANIFEST})
    path = f"/v1/projects/{made.json()['id']}/deployments"
    viewer = installation.sign_in(installation.add_member(org, Role.VIEWER))
    assert viewer.get(path).json() == {"deployments": []}
    assert viewer.post(path, {}).status_code == 403


def test_wait_answers_when_the_state_changes(
    installation: Installation, project: DeployedProject
) -> None:
    id_ = project.deploy()
    path = f"{project.path}/deployments/{id_}"
    answers: list[dict[str, Any]] = []
    waiting = threading.Thread(
        target=lambda: answers.append(project.caller.get(f"{path}?wait=60").json())
    )
    waiting.start()
    installation.work()
    waiting.join()
    assert len(answers) == 1 and answers[0]["status"] in ("in_progress", "succeeded")
    # One that has ended is not waited for.
    assert project.caller.get(f"{path}?wait=60").json()["status"] == "succeeded"
    for wait in ("-1", "61", "nan", "x"):
        assert project.caller.get(f"{path}?wait={wait}").status_code == 400, wait


def test_a_deployment_with_debug_has_a_runtime_that_logs_details(
    installation: Installation, project: DeployedProject
) -> None:
    def level() -> object:
        manifest = manifests.parse(installation.deployer.running[project.id].manifest)
        return manifest.runtime.output_level

    first = project.deploy(debug=True)
    installation.work()
    assert level() == "verbose"
    project.deploy()
    installation.work()
    assert level() is None
    project.deploy(target_deployment_id=first)
    installation.work()
    assert level() == "verbose"
