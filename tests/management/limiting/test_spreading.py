from typing import Any

import pytest
from sqlalchemy import select, update

from caraway_management.domain.plans import PLANS
from caraway_management.limiting import spreading
from caraway_management.outbox import Entry
from caraway_management.store.tables import Org, OutboxEntry, Project
from tests.kit.deployed_projects import MANIFEST, new_project
from tests.kit.management import Installation


def _set_plan(installation: Installation, name: str, **limits: Any) -> None:
    administrator = installation.sign_in(installation.add_user(is_administrator=True))
    answer = administrator.put(f"/v1/plans/{name}", {"limits": limits})
    assert answer.status_code == 200, answer.text


def test_a_changed_plan_reaches_the_runtimes_of_its_organizations(
    installation: Installation,
) -> None:
    resources = {"limits": {"cpu": "8", "memory": "16Gi"}}
    shop = new_project(installation, replicas=3, resources=resources)
    other, idle, paused = (new_project(installation) for _ in range(3))
    for each in (shop, other, paused):
        each.deploy()
    installation.work()

    async def arrange(session: Any) -> None:
        org = select(Project.org_id).where(Project.id == other.id).scalar_subquery()
        await session.execute(update(Org).where(Org.id == org).values(plan="pro"))
        now = installation.clock()
        await session.execute(update(Project).where(Project.id == paused.id).values(paused_at=now))

    installation.change(arrange)
    deployer = installation.deployer
    deployer.calls.clear()
    started = list(deployer.started)
    smaller = {"api_rps": 7, "sql_concurrent_queries": 2, "replicas": 2}
    sizes = {"resources": {"max_cpu": 4, "max_memory_gi": 8}}
    _set_plan(installation, "enterprise", **smaller, **sizes)
    installation.work()
    assert deployer.calls == [("apply", shop.id)]
    wanted = deployer.running[shop.id]
    assert {name: wanted.limits[name] for name in smaller} == smaller
    assert wanted.config["replicas"] == 2
    assert wanted.config["resources"] == {"limits": {"cpu": "4", "memory": "8Gi"}}
    # The runtime goes on.
    assert deployer.started == started
    assert deployer.running[other.id].limits["api_rps"] == PLANS["enterprise"].api_rps
    assert idle.id not in deployer.running


def test_another_plan_of_an_organization_reaches_its_runtimes(installation: Installation) -> None:
    shop, other = new_project(installation), new_project(installation)
    shop.deploy()
    other.deploy()
    installation.work()
    installation.deployer.calls.clear()

    administrator = installation.sign_in(installation.add_user(is_administrator=True))
    [org_id] = installation.rows(select(Project.org_id).where(Project.id == shop.id))
    answer = administrator.put(f"/v1/orgs/{org_id}/plan", {"plan": "developer"})
    assert answer.status_code == 200, answer.text
    installation.work()
    assert installation.deployer.calls == [("apply", shop.id)]
    assert installation.deployer.running[shop.id].limits["api_rps"] == 1_000


def test_more_projects_than_a_page_are_all_applied(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spreading, "_PAGE", 2)
    projects = [new_project(installation) for _ in range(5)]
    for project in projects:
        project.deploy()
    installation.work()
    installation.deployer.calls.clear()
    _set_plan(installation, "enterprise", api_rps=9)
    installation.work()
    assert sorted(installation.deployer.calls) == [("apply", each.id) for each in projects]


def test_an_entry_that_is_done_twice_has_the_same_effect(installation: Installation) -> None:
    shop = new_project(installation)
    shop.deploy()
    installation.work()
    entry = Entry(1, spreading.KIND, "plan:x", {"plan": "enterprise"}, installation.clock(), 1, 0)
    work = spreading.LimitWork(installation.services)
    installation.run(work.apply, entry)
    installation.run(work.apply, entry)
    installation.work()
    assert list(installation.deployer.running) == [shop.id]
    assert installation.rows(select(OutboxEntry)) == []


def test_projects_and_manifests_are_limited_by_the_plan(installation: Installation) -> None:
    shop = new_project(installation)
    _set_plan(installation, "enterprise", apps=2, pods=1)
    body = {"name": "second", "manifest": MANIFEST}
    second = shop.caller.post("/v1/projects", body)
    assert second.status_code == 201
    third = shop.caller.post("/v1/projects", {"name": "third"})
    assert (third.status_code, third.json()["code"]) == (403, "plan_limit")
    _set_plan(installation, "enterprise", apps=2, pods=0)
    path = f"/v1/projects/{second.json()['id']}"
    refused = shop.caller.post(f"{path}/deployments", {})
    assert (refused.status_code, refused.json()["code"]) == (403, "plan_limit")
    assert shop.caller.delete(path).status_code == 204
    assert shop.caller.post("/v1/projects", {"name": "third"}).status_code == 201
