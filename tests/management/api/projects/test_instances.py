import pytest

from caraway_management.api.projects import instances
from caraway_management.deployers.protocol import Instance
from caraway_management.domain import plans
from caraway_management.domain.refusals import RefusedError
from tests.kit.management import Caller, Installation

MANIFEST = "version: v2\nkind: Spicepod\nname: shop\n"


def _deployed(installation: Installation, plan: str) -> tuple[Caller, str]:
    user = installation.add_user()
    installation.add_org("acme", user, plan)
    caller = installation.sign_in(user)
    made = caller.post("/v1/projects", {"name": "shop", "manifest": MANIFEST}).json()
    path = f"/v1/projects/{made['id']}"
    for answer in (caller.get(f"{path}/instances"), caller.get(f"{path}/instances/a/logs")):
        assert (answer.status_code, answer.json()["code"]) == (409, "project_not_deployed")
    assert caller.post(f"{path}/deployments").status_code == 202
    installation.work()
    return caller, path


def test_instances_and_their_logs(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, path = _deployed(installation, "community")
    assert caller.get(f"{path}/instances").json() == {
        "instances": [{"name": "runtime-0", "status": "running", "started_at": None}]
    }
    logs = f"{path}/instances/runtime-0/logs"
    assert caller.get(logs).json() == {"lines": ["one", "two"]}
    assert caller.get(f"{logs}?tail=1").json() == {"lines": ["two"]}
    refused = caller.get(f"{logs}?tail=101")
    assert refused.status_code == 403
    assert (refused.json()["code"], refused.json()["max_tail"]) == ("plan_limit", 100)
    absent = caller.get(f"{path}/instances/runtime-9/logs")
    assert (absent.status_code, absent.json()["code"]) == (404, "instance_not_found")
    for tail in ("0", "-1", "x", "1000000"):
        assert caller.get(f"{logs}?tail={tail}").status_code == 400

    async def ended(*_: object) -> None:
        return None

    monkeypatch.setattr(installation.deployer, "logs", ended)
    offline = caller.get(logs)
    assert (offline.status_code, offline.json()["code"]) == (409, "instance_offline")


def test_at_most_fifty_instances_are_shown(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, path = _deployed(installation, "pro")

    async def many(*_: object) -> list[Instance]:
        return [Instance(f"runtime-{number}", "running") for number in range(60)]

    monkeypatch.setattr(installation.deployer, "instances", many)
    assert len(caller.get(f"{path}/instances").json()["instances"]) == 50


@pytest.mark.parametrize(
    ("is_paused", "is_deployed", "code"),
    [
        (True, True, "project_paused"),
        (True, False, "project_paused"),
        (False, False, "project_not_deployed"),
    ],
)
def test_a_project_without_a_runtime_is_a_conflict(
    is_paused: bool, is_deployed: bool, code: str
) -> None:
    instances.check_running(is_paused=False, is_deployed=True)
    with pytest.raises(RefusedError) as refused:
        instances.check_running(is_paused=is_paused, is_deployed=is_deployed)
    assert (refused.value.status, refused.value.code) == (409, code)


def test_a_plan_limits_the_lines_of_a_log() -> None:
    most = plans.max_tail("free")
    instances.check_tail("free", most)
    with pytest.raises(RefusedError) as refused:
        instances.check_tail("free", most + 1)
    assert (refused.value.status, refused.value.extra) == (403, {"max_tail": most})


def test_unknown_and_ended_instances() -> None:
    instances.check_known("a", {"a"})
    with pytest.raises(RefusedError, match="'b' not found"):
        instances.check_known("b", {"a"})
    assert instances.offline("a").code == "instance_offline"
