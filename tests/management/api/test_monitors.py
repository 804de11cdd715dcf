from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.engine import URL

from caraway_management.domain.platform import Cluster, Platform
from caraway_management.domain.scopes import Role
from caraway_management.notices.settings import MailServer, NoticeSettings
from caraway_management.store.tables import Activity, Monitor, Org, Project
from tests.kit import management
from tests.kit.management import Caller, Installation

EMAIL = {"email": {"emails": ["ops@example.com"]}}
NEW = {"name": "Failures", "template": "query_failures", "spec": {"threshold": 5}, "targets": EMAIL}


@pytest.fixture
def installation(prepared_url: URL) -> Iterator[Installation]:
    """An installation that can send e-mail and to Slack, with a cluster."""
    notices = NoticeSettings(MailServer("mail.test", 25, "caraway@example.com"), "xoxb-1")
    platform = Platform(clusters=(Cluster("blue", "local"),))
    with management.installation(
        prepared_url, is_prepared=True, notices=notices, platform=platform
    ) as made:
        yield made


@pytest.fixture
def owner(installation: Installation) -> Caller:
    user = installation.add_user()
    installation.add_org("acme", user)
    return installation.sign_in(user)


@pytest.fixture
def path(owner: Caller) -> str:
    """The path of the monitors of a project."""
    path = f"/v1/projects/{owner.post('/v1/projects', {'name': 'shop'}).json()['id']}/monitors"
    [alert] = owner.get(path).json()["monitors"]
    assert owner.delete(f"{path}/{alert['id']}").status_code == 200
    return path


def _codes(answer: Any) -> tuple[int, str | None]:
    return answer.status_code, answer.json().get("code")


def test_a_monitor_is_added_listed_shown_changed_and_deleted(owner: Caller, path: str) -> None:
    made = owner.post(path, NEW)
    assert made.status_code == 201, made.text
    monitor = made.json()
    shown = {key: monitor[key] for key in ("name", "template", "targets", "enabled", "state")}
    assert shown == {
        "name": "Failures",
        "template": "query_failures",
        "targets": EMAIL,
        "enabled": True,
        "state": "ok",
    }
    assert monitor["spec"] == {
        "op": "GT",
        "threshold": 5,
        "window": "5m",
        "sustainSecs": 0,
        "severity": "warn",
        "includeDetails": True,
    }
    for name in ("last_fired_at", "last_resolved_at", "evaluation_unavailable_reason"):
        assert monitor[name] is None
    one = f"{path}/{monitor['id']}"
    assert owner.get(path).json() == {"monitors": [monitor]}
    assert owner.get(one).json() == monitor
    assert owner.get(path.replace("projects", "apps")).json() == {"monitors": [monitor]}
    changed = owner.patch(one, {"spec": {"window": "1h"}, "enabled": False}).json()
    assert changed["spec"] == monitor["spec"] | {"window": "1h"}
    assert (changed["enabled"], changed["revision"]) == (False, 2)
    gone = owner.delete(one)
    assert (gone.status_code, gone.json()) == (200, {"ok": True})
    assert owner.get(one).status_code == 404
    assert owner.delete(one).status_code == 404


def test_defaults_of_templates(installation: Installation, owner: Caller, path: str) -> None:
    table = [
        ("instance_health", {"threshold": 100}, "LT", 300),
        ("query_latency_p99", {"threshold": 1_000}, "GT", 300),
        ("dataset_status", {"threshold": 3, "dataset": "orders"}, "EQ", 300),
        ("llm_failures", {"threshold": 0}, "GT", 0),
    ]
    for template, spec, op, sustain in table:
        body = NEW | {"name": template, "template": template, "spec": spec}
        installation.clock.advance(seconds=1)
        made = owner.post(path, body).json()["spec"]
        assert (made["op"], made["sustainSecs"]) == (op, sustain)
    assert owner.get(f"{path}?limit=1&offset=2").json()["monitors"][0]["spec"]["datasets"] == [
        "orders"
    ]


REFUSED: list[tuple[dict[str, Any], int, str | None]] = [
    ({"name": ""}, 400, None),
    ({"name": "a" * 101}, 400, None),
    ({"name": "a\nb"}, 400, None),
    ({"template": "moon_phase"}, 404, "monitor_template_unavailable"),
    ({"template": "cluster_cpu"}, 404, "monitor_template_unavailable"),
    ({"spec": {}}, 400, None),
    ({"spec": {"threshold": "5"}}, 400, None),
    ({"spec": {"threshold": 1e300}}, 400, None),
    ({"spec": {"threshold": 5, "op": "MORE"}}, 400, None),
    ({"spec": {"threshold": 5, "window": "2m"}}, 400, None),
    ({"spec": {"threshold": 5, "sustainSecs": 86_401}}, 400, None),
    ({"spec": {"threshold": 5, "sustainSecs": -1}}, 400, None),
    ({"spec": {"threshold": 5, "severity": "info"}}, 400, None),
    ({"spec": {"threshold": 5, "dataset": "a"}}, 400, None),
    ({"spec": {"threshold": 5, "id": 1}}, 400, None),
    ({"template": "dataset_status"}, 400, None),
    ({"template": "dataset_status", "spec": {"threshold": 6, "dataset": "a"}}, 400, None),
    ({"template": "dataset_status", "spec": {"threshold": 1, "datasets": []}}, 400, None),
    (
        {"template": "dataset_status", "spec": {"threshold": 1, "datasets": ["a"] * 21}},
        400,
        None,
    ),
    (
        {"template": "dataset_status", "spec": {"threshold": 1, "dataset": "a", "datasets": ["b"]}},
        400,
        None,
    ),
    ({"targets": {}}, 400, None),
    ({"targets": {"email": {}}}, 400, None),
    ({"targets": {"email": {"emails": ["nobody"]}}}, 400, None),
    ({"targets": {"email": {"emails": ["a@b.c\r\nBcc: d@e.f"]}}}, 400, None),
    ({"targets": {"email": {"emails": ["a@b.c"] * 21}}}, 400, None),
    ({"targets": {"email": {"recipientUserIds": [1] * 51}}}, 400, None),
    ({"targets": {"slack": {"channelId": "#general"}}}, 400, None),
    ({"targets": {"http": {"url": "http://example.com"}}}, 400, "url_not_allowed"),
    ({"targets": {"http": {"url": "https://169.254.169.254/"}}}, 400, "url_not_allowed"),
    ({"targets": {"http": {"url": "https://example.com", "method": "GET"}}}, 400, None),
    ({"targets": {"http": {"url": "https://example.com", "token": "a b"}}}, 400, None),
    ({"targets": {"http": {"url": "https://example.com", "signing_secret": "x"}}}, 400, None),
    ({"targets": {"sms": {"number": "1"}}}, 400, None),
    ({"state": "firing"}, 400, None),
    ({"org_id": 2}, 400, None),
]


def test_what_is_no_monitor_is_refused(owner: Caller, path: str) -> None:
    for change, status, code in REFUSED:
        assert _codes(owner.post(path, NEW | change)) == (status, code), change
    assert owner.get(path).json() == {"monitors": []}


def test_names_are_unique_without_case(owner: Caller, path: str) -> None:
    first = owner.post(path, NEW).json()
    assert _codes(owner.post(path, NEW | {"name": "FAILURES"})) == (409, "monitor_name_taken")
    other = owner.post(path, NEW | {"name": "Other"}).json()
    renamed = owner.patch(f"{path}/{other['id']}", {"name": "failures"})
    assert _codes(renamed) == (409, "monitor_name_taken")
    assert owner.patch(f"{path}/{first['id']}", {"name": "failures"}).json()["name"] == "failures"


def test_a_project_has_at_most_20_disabled_ones_included(owner: Caller, path: str) -> None:
    for number in range(20):
        made = owner.post(path, NEW | {"name": f"m{number}", "enabled": False})
        assert made.status_code == 201
    assert _codes(owner.post(path, NEW)) == (409, "monitor_limit")
    assert owner.delete(f"{path}/{made.json()['id']}").status_code == 200
    assert owner.post(path, NEW).status_code == 201


def test_a_change_from_an_old_revision_is_refused(owner: Caller, path: str) -> None:
    one = f"{path}/{owner.post(path, NEW).json()['id']}"
    assert owner.patch(one, {"name": "A", "revision": 1}).status_code == 200
    assert _codes(owner.patch(one, {"name": "B", "revision": 1})) == (409, "monitor_changed")
    assert owner.patch(one, {"name": "C"}, headers={"if-match": '"1"'}).status_code == 412
    assert owner.get(one).json()["name"] == "A"


def test_a_paused_project_refuses_new_monitors(
    installation: Installation, owner: Caller, path: str
) -> None:
    one = f"{path}/{owner.post(path, NEW).json()['id']}"

    async def pause(session: Any) -> None:
        project = (await session.scalars(select(Project))).one()
        project.paused_at = installation.clock()

    installation.change(pause)
    assert _codes(owner.post(path, NEW | {"name": "x"})) == (409, "project_paused")
    assert owner.patch(one, {"enabled": False}).status_code == 200


def test_tokens_are_kept_sealed_and_not_sent_to_another_url(
    installation: Installation, owner: Caller, path: str
) -> None:
    http = {"url": "https://example.com/hook", "token": "t0ken-of-a-user"}
    made = owner.post(path, NEW | {"targets": {"http": http}})
    shown = made.json()["targets"]["http"]
    secret = shown.pop("signing_secret")
    assert secret.startswith("whsec_")
    assert shown == {
        "url": http["url"],
        "method": "POST",
        "has_token": True,
        "disabled_reason": None,
    }
    one = f"{path}/{made.json()['id']}"
    assert owner.get(one).json()["targets"]["http"] == shown
    [monitor] = installation.rows(select(Monitor))
    assert "t0ken" not in str(monitor.targets)
    assert secret not in str(monitor.targets)
    kept = {"targets": {"http": {"url": http["url"], "method": "PUT"}}}
    assert owner.patch(one, kept).json()["targets"]["http"] == shown | {"method": "PUT"}
    [same] = installation.rows(select(Monitor))
    for field in ("sealed_token", "sealed_signing_secret"):
        assert same.targets["http"][field] == monitor.targets["http"][field]
    moved = owner.patch(one, {"targets": {"http": {"url": "https://example.org/hook"}}}).json()
    assert moved["targets"]["http"]["has_token"] is False
    assert moved["targets"]["http"]["signing_secret"] != secret


def test_viewers_and_members_read_and_admins_change(
    installation: Installation, owner: Caller, path: str
) -> None:
    one = f"{path}/{owner.post(path, NEW).json()['id']}"
    org = installation.rows(select(Project))[0].org_id
    for role in (Role.VIEWER, Role.MEMBER):
        member = installation.sign_in(installation.add_member(_Org(org), role))  # type: ignore[arg-type]
        assert member.get(path).status_code == 200
        assert member.get(one).status_code == 200
        for answer in (member.post(path, NEW), member.patch(one, {}), member.delete(one)):
            assert _codes(answer) == (403, "forbidden")
    admin = installation.sign_in(installation.add_member(_Org(org), Role.ADMIN))  # type: ignore[arg-type]
    assert admin.patch(one, {"enabled": False}).status_code == 200
    stranger = installation.add_user()
    installation.add_org("umbrella", stranger)
    other = installation.sign_in(stranger)
    for answer in (other.get(path), other.get(one), other.post(path, NEW), other.delete(one)):
        assert answer.status_code == 404


class _Org:
    def __init__(self, id_: int) -> None:
        self.id = id_


def test_monitors_of_clusters_belong_to_the_organization(
    installation: Installation, owner: Caller
) -> None:
    path = "/v1/clusters/blue/monitors"
    body = NEW | {"template": "cluster_cpu", "spec": {"threshold": 80}}
    assert _codes(owner.post(path, NEW)) == (404, "monitor_template_unavailable")
    one = f"{path}/{owner.post(path, body).json()['id']}"
    assert owner.get(path).json()["monitors"] == [owner.get(one).json()]
    stranger = installation.add_user()
    installation.add_org("umbrella", stranger)
    other = installation.sign_in(stranger)
    assert other.get(path).json() == {"monitors": []}
    assert other.get(one).status_code == 404
    assert owner.patch(one, {"enabled": False}).json()["revision"] == 2
    assert owner.delete(one).json() == {"ok": True}
    assert owner.get("/v1/clusters/red/monitors").status_code == 404


def test_new_projects_have_an_alert_on_their_storage(
    installation: Installation, owner: Caller
) -> None:
    path = f"/v1/projects/{owner.post('/v1/projects', {'name': 'shop'}).json()['id']}"
    [alert] = owner.get(f"{path}/monitors").json()["monitors"]
    assert (alert["template"], alert["spec"]["op"], alert["spec"]["threshold"]) == (
        "storage",
        "GEQ",
        90,
    )
    [user_id] = installation.rows(select(Org.id))
    assert alert["targets"] == {"email": {"recipientUserIds": [user_id]}}
    # A project that is created again has the monitors that it had.
    assert owner.delete(path).status_code == 204
    assert owner.post("/v1/projects", {"name": "shop"}).status_code == 201
    assert owner.get(f"{path}/monitors").json()["monitors"] == [alert]


def test_new_projects_have_the_alerts_that_are_asked_for(owner: Caller) -> None:
    templates = {}
    for name, asked in (("many", True), ("none", False)):
        made = owner.post("/v1/projects", {"name": name, "default_alerts": asked}).json()
        found = owner.get(f"/v1/projects/{made['id']}/monitors").json()["monitors"]
        templates[name] = {alert["template"] for alert in found}
    assert templates == {
        "many": {"storage", "instance_health", "memory_working_set", "dataset_refresh_errors"},
        "none": set(),
    }


def test_changes_are_recorded(installation: Installation, owner: Caller, path: str) -> None:
    installation.clock.advance(seconds=1)
    one = owner.post(path, NEW).json()["id"]
    owner.delete(f"{path}/{one}")
    entries = installation.rows(
        select(Activity).where(Activity.resource_kind == "monitor", Activity.resource_id == one)
    )
    assert [(each.action, each.resource_id, each.resource_name) for each in entries] == [
        ("create_monitor", one, "Failures"),
        ("delete_monitor", one, "Failures"),
    ]
    assert {each.project_id for each in entries} == {int(path.split("/")[3])}


def test_channels_that_are_not_configured_are_refused(prepared_url: URL) -> None:
    with management.installation(prepared_url, is_prepared=True) as bare:
        user = bare.add_user()
        bare.add_org("acme", user)
        caller = bare.sign_in(user)
        path = f"/v1/projects/{caller.post('/v1/projects', {'name': 'shop'}).json()['id']}/monitors"
        assert _codes(caller.post(path, NEW)) == (400, "email_not_configured")
        slack = NEW | {"targets": {"slack": {"channelId": "C1"}}}
        assert _codes(caller.post(path, slack)) == (400, "slack_not_configured")
