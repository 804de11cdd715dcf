from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from caraway_management.domain.scopes import Role
from caraway_management.projects import finding
from tests.kit.management import Caller, Installation


@pytest.fixture
def owner(installation: Installation) -> Caller:
    """The owner of an organization with the plan `enterprise`."""
    user = installation.add_user()
    installation.add_org("acme", user)
    return installation.sign_in(user)


_LEFT_OUT = {"manifest": None, "spicepod": None, "manifest_left_out": True}


def _create(caller: Caller, name: str = "shop", **settings: Any) -> dict[str, Any]:
    answer = caller.post("/v1/projects", {"name": name, **settings})
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


def test_a_project_is_created_shown_changed_and_deleted(owner: Caller) -> None:
    made = _create(owner, description="Orders", region="local", tags={"team": "a"}, replicas=2)
    assert made["name"] == "shop"
    assert (made["visibility"], made["region"], made["cluster_name"]) == ("private", "local", None)
    assert made["tags"] == {"team": "a"}
    assert made["config"]["replicas"] == 2
    assert made["config"]["update_channel"] == "stable"
    path = f"/v1/projects/{made['id']}"
    assert owner.get(path).json() == made
    changed = owner.put(path, {"description": "All orders", "replicas": None}).json()
    assert changed["description"] == "All orders"
    assert changed["config"]["replicas"] == 1
    assert changed["revision"] == made["revision"] + 1
    assert changed["tags"] == made["tags"]
    assert owner.delete(path).status_code == 204
    assert owner.get(path).status_code == 404
    assert owner.delete(path).status_code == 404
    assert owner.put(path, {}).status_code == 404


def test_a_manifest_has_both_names(owner: Caller) -> None:
    text = "version: v1\nkind: Caraway\nname: shop\n"
    for name, field in (("shop-1", "manifest"), ("shop-2", "spicepod")):
        config = _create(owner, name, **{field: text})["config"]
        assert (config["manifest"], config["spicepod"]) == (text, text)


def test_lists_have_the_name_of_their_path(owner: Caller) -> None:
    made = [_create(owner, f"shop-{number}") for number in range(3)]
    assert owner.get("/v1/projects").json() == {"projects": made}
    assert owner.get("/v1/apps").json() == {"apps": made}
    assert owner.get("/v1/apps?limit=1&offset=1").json() == {"apps": made[1:2]}
    assert owner.get(f"/v1/apps/{made[0]['id']}").json() == made[0]
    for query in ("limit=0", "limit=101", "limit=x", "offset=-1"):
        assert owner.get(f"/v1/projects?{query}").status_code == 400, query


def test_lists_leave_long_manifests_out(owner: Caller) -> None:
    text = "version: v1\nkind: Caraway\nname: shop\n"
    long = text + "#" * (finding.MOST_LISTED + 1 - len(text))
    whole = _create(owner, "whole", manifest=text)
    made = _create(owner, "long", manifest=long)
    path = f"/v1/projects/{made['id']}"
    forks = f"/v1/projects/{whole['id']}/forks"
    made_fork = owner.post(forks, {"name": "fork"}).json()["id"]
    assert owner.put(f"/v1/projects/{made_fork}", {"manifest": long}).status_code == 200
    listed = owner.get("/v1/projects").json()["projects"]
    assert owner.get("/v1/projects?offset=1").json()["projects"] == listed[1:]
    assert listed[:2] == [
        whole, {**made, "config": made["config"] | _LEFT_OUT}
    ]  # fmt: skip
    assert owner.get(path).json() == made
    (fork,) = owner.get(forks).json()["forks"]
    assert (fork["name"], fork["config"]) == ("fork", fork["config"] | _LEFT_OUT)


@pytest.mark.parametrize("name", ["abc", "a" * 39, "my shop", "shöp-1", "shop_1", "", "shop\n1"])
def test_a_name_that_cannot_be_is_refused(owner: Caller, name: str) -> None:
    answer = owner.post("/v1/projects", {"name": name})
    assert answer.status_code == 400
    assert list(answer.json()["details"]["fieldErrors"]) == ["name"]


def test_a_name_is_taken_without_regard_to_case(owner: Caller) -> None:
    _create(owner, "Shop")
    answer = owner.post("/v1/apps", {"name": "sHOP"})
    assert answer.status_code == 409
    assert answer.json() == {"error": 'App "sHOP" already exists in this organization'}


def test_a_deleted_project_is_revived_with_its_id_name_and_settings(owner: Caller) -> None:
    made = _create(owner, "Shop", description="Orders", tags={"team": "a"}, region="local")
    owner.delete(f"/v1/projects/{made['id']}")
    revived = _create(owner, "shop", description="Again")
    assert (revived["id"], revived["name"]) == (made["id"], "Shop")
    assert (revived["description"], revived["tags"]) == ("Again", {"team": "a"})
    # The place is chosen again.
    assert revived["region"] is None
    assert owner.get("/v1/projects").json() == {"projects": [revived]}


def test_of_two_creations_at_once_one_succeeds(installation: Installation, owner: Caller) -> None:
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: owner.post("/v1/projects", {"name": "shop"}), range(6)))
    assert sorted(each.status_code for each in answers) == [201, *[409] * 5]
    texts = {each.json()["error"] for each in answers if each.status_code == 409}
    assert texts == {'App "shop" already exists in this organization'}
    assert len(owner.get("/v1/projects").json()["projects"]) == 1


@pytest.mark.parametrize(
    "field", ["id", "org_id", "created_at", "deleted_at", "endpoint", "repository", "forked_from"]
)
def test_fields_that_are_not_settings_are_refused(owner: Caller, field: str) -> None:
    made = _create(owner)
    answers = [
        owner.post("/v1/projects", {"name": "other", field: 7}),
        owner.put(f"/v1/projects/{made['id']}", {field: 7}),
    ]
    for answer in answers:
        assert answer.status_code == 400
        assert answer.json()["details"]["fieldErrors"] == {field: ["unknown field"]}
    assert owner.get("/v1/projects").json() == {"projects": [made]}


def test_projects_of_other_organizations_do_not_exist(
    installation: Installation, owner: Caller
) -> None:
    made = _create(owner)
    user = installation.add_user()
    installation.add_org("umbrella", user)
    stranger = installation.sign_in(user)
    for id_ in (made["id"], 999_999, 2**63 - 1):
        path = f"/v1/projects/{id_}"
        for answer in (stranger.get(path), stranger.put(path, {}), stranger.delete(path)):
            assert (answer.status_code, answer.json()) == (
                404, {"error": f"project '{id_}' not found"},
            )  # fmt: skip
    assert stranger.get("/v1/projects").json() == {"projects": []}
    assert _create(stranger, "shop")["id"] != made["id"]
    for id_ in ("0", "-1", "abc", str(2**63), "1.5"):
        assert owner.get(f"/v1/projects/{id_}").status_code == 400, id_


def test_roles_and_scopes_decide(installation: Installation) -> None:
    user = installation.add_user()
    org = installation.add_org("acme", user)
    id_ = _create(installation.sign_in(user))["id"]
    viewer = installation.sign_in(installation.add_member(org, Role.VIEWER))
    member = installation.sign_in(installation.add_member(org, Role.MEMBER))
    reader = installation.sign_in(user, "apps:read")
    writer = installation.sign_in(user, "apps:write")
    path = f"/v1/projects/{id_}"
    assert viewer.get(path).status_code == 200
    for sender, code in ((viewer, "forbidden"), (reader, "insufficient_scope")):
        for answer in (
            sender.post("/v1/projects", {"name": "other"}), sender.put(path, {}),
            sender.delete(path),
        ):  # fmt: skip
            assert (answer.status_code, answer.json()["code"]) == (403, code)
    assert writer.put(path, {"description": "x"}).status_code == 200
    assert writer.delete(path).status_code == 403
    assert member.delete(path).status_code == 204


def test_a_change_of_an_older_revision_is_refused(owner: Caller) -> None:
    made = _create(owner)
    path = f"/v1/projects/{made['id']}"
    first = owner.put(path, {"description": "a", "revision": made["revision"]})
    assert first.status_code == 200
    second = owner.put(path, {"description": "b", "revision": made["revision"]})
    assert (second.status_code, second.json()["code"]) == (409, "project_changed")
    assert owner.get(path).json()["description"] == "a"
