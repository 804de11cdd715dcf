from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.engine import URL

from caraway_management.domain.platform import Cluster, Platform, Region
from caraway_management.domain.scopes import Role
from caraway_management.secrets import linking, storing
from caraway_management.secrets.storing import Owner
from caraway_management.store.tables import Activity, Project, Secret, SecretLink
from tests.kit import management
from tests.kit.management import Caller, Installation

MANIFEST = "version: v2\nkind: Spicepod\nname: shop\n"
STATE = "runtime:\n  scheduler:\n    state_location: s3://state/shop\n"
PLATFORM = Platform(
    regions=(
        Region("east", "east", is_default=True),
        Region("west", "west"),
        Region("closed", "closed", is_disabled=True),
    ),
    clusters=(
        Cluster("big", "east"),
        Cluster("old", "east", is_deployable=False),
        Cluster("private", "west", organizations=("acme",)),
    ),
)


@pytest.fixture
def installation(prepared_url: URL) -> Iterator[Installation]:
    """An installation with two regions and three clusters."""
    with management.installation(prepared_url, is_prepared=True, platform=PLATFORM) as made:
        yield made


@pytest.fixture
def owner(installation: Installation) -> Caller:
    """The owner of the organizations `acme` and `other`."""
    user = installation.add_user()
    installation.add_org("acme", user)
    installation.add_org("other", user)
    return installation.sign_in(user)


def _create(caller: Caller, name: str = "shop", **settings: Any) -> dict[str, Any]:
    answer = caller.post("/v1/projects", {"name": name, **settings})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def test_a_project_is_in_a_region_or_cluster_or_standalone(owner: Caller) -> None:
    places: list[tuple[dict[str, str | None], tuple[str | None, str | None]]] = [
        ({}, (None, None)),
        ({"region": "west"}, ("west", None)),
        ({"cluster_name": "big"}, ("east", "big")),
        ({"cluster_name": "private", "region": "west"}, ("west", "private")),
    ]
    for number, (given, expected) in enumerate(places):
        made = _create(owner, f"shop-{number}", **given)
        assert (made["region"], made["cluster_name"]) == expected
    path = f"/v1/projects/{made['id']}"
    moved = owner.put(path, {"cluster_name": "big"}).json()
    assert (moved["region"], moved["cluster_name"]) == ("east", "big")
    alone = owner.put(path, {"cluster_name": None, "region": None}).json()
    assert (alone["region"], alone["cluster_name"]) == (None, None)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"cluster_name": "none"}, "Cluster 'none' not found"),
        ({"cluster_name": "old"}, "'old' is not a deployable cluster"),
        (
            {"cluster_name": "big", "region": "west"},
            "region 'west' does not match cluster region 'east'",
        ),
        ({"region": "north"}, "region 'north' not found"),
        ({"region": "closed"}, "region 'closed' takes no projects"),
    ],
)
def test_wrong_places_are_refused(owner: Caller, given: dict[str, str], error: str) -> None:
    made = _create(owner)
    for answer in (
        owner.post("/v1/projects", {"name": "other", **given}),
        owner.put(f"/v1/projects/{made['id']}", given),
    ):
        assert (answer.status_code, answer.json()["error"]) == (400, error)
    other = owner.post(
        "/v1/projects", {"name": "new1", "cluster_name": "private"},
        headers={"x-org-name": "other"},
    )  # fmt: skip
    assert other.json()["error"] == "Cluster 'private' not found"


def test_a_paused_project_has_no_runtime_and_editable_settings(
    installation: Installation, owner: Caller
) -> None:
    made = _create(owner, manifest=MANIFEST)
    path = f"/v1/projects/{made['id']}"
    assert owner.post(f"{path}/deployments").status_code == 202
    installation.work()
    paused = owner.post(f"{path}/pause")
    assert (paused.status_code, paused.json()["paused_at"]) == (200, made["created_at"])
    assert (paused.json()["endpoint"], paused.json()["flight_endpoint"]) == (None, None)
    installation.work()
    refused = owner.post(f"{path}/deployments")
    assert (refused.status_code, refused.json()["code"]) == (400, "spicepod_paused")
    again = owner.post(f"{path}/pause")
    assert (again.status_code, again.json()["code"]) == (409, "project_paused")
    assert owner.put(path, {"description": "Closed"}).json()["description"] == "Closed"
    instances = owner.get(f"{path}/instances")
    assert (instances.status_code, instances.json()["code"]) == (409, "project_paused")
    resumed = owner.post(f"{path}/resume")
    assert (resumed.status_code, resumed.json()["paused_at"]) == (200, None)
    listed = owner.get(f"{path}/deployments").json()["deployments"]
    assert listed[0]["id"] == resumed.json()["deployment_id"]
    assert listed[0]["creation_source"] == "resume"
    again = owner.post(f"{path}/resume")
    assert (again.status_code, again.json()["code"]) == (409, "project_not_paused")


def test_a_project_without_a_manifest_resumes_without_a_deployment(owner: Caller) -> None:
    path = f"/v1/projects/{_create(owner)['id']}"
    assert owner.post(f"{path}/pause").status_code == 200
    resumed = owner.post(f"{path}/resume")
    assert (resumed.status_code, resumed.json()["deployment_id"]) == (200, None)


def test_viewers_neither_pause_nor_fork_nor_transfer(installation: Installation) -> None:
    org = installation.add_org("acme", user := installation.add_user())
    path = f"/v1/projects/{_create(installation.sign_in(user), manifest=MANIFEST)['id']}"
    viewer = installation.sign_in(installation.add_member(org, Role.VIEWER))
    member = installation.sign_in(installation.add_member(org, Role.MEMBER))
    bodies: dict[str, Any] = {
        "pause": None, "resume": None, "forks": {"name": "fork"},
        "transfer": {"org": "acme", "confirm": "shop"},
    }  # fmt: skip
    for verb, body in bodies.items():
        assert viewer.post(f"{path}/{verb}", body).status_code == 403, verb
    assert member.post(f"{path}/transfer", bodies["transfer"]).status_code == 403
    assert member.post(f"{path}/pause").status_code == 200


def test_a_fork_has_manifest_and_settings_of_its_source(
    installation: Installation, owner: Caller
) -> None:
    source = _create(owner, manifest=MANIFEST, replicas=2, tags={"team": "a"}, description="Orders")
    path = f"/v1/projects/{source['id']}/forks"
    answer = owner.post(path, {"name": "shop-2"})
    assert answer.status_code == 201, answer.text
    fork = answer.json()
    assert fork["forked_from"] == source["id"] != fork["id"]
    assert (fork["config"], fork["tags"]) == (source["config"], source["tags"])
    assert (fork["description"], fork["shared_state"]) == ("Orders", [])
    assert isinstance(fork["deployment_id"], int)
    (listed,) = owner.get(path).json()["forks"]
    assert listed["id"] == fork["id"]
    assert owner.get(f"/v1/projects/{fork['id']}/forks").json() == {"forks": []}
    for project in (source, fork):
        (alert,) = owner.get(f"/v1/projects/{project['id']}/monitors").json()["monitors"]
        assert alert["template"] == "storage"


def test_links_to_secrets_of_the_organization_are_copied_to_a_fork(
    installation: Installation, owner: Caller
) -> None:
    source = _create(owner, manifest=MANIFEST)
    _add_secrets(installation, source["id"])
    fork = owner.post(f"/v1/projects/{source['id']}/forks", {"name": "shop-2"}).json()
    links = installation.rows(select(SecretLink).order_by(SecretLink.project_id))
    assert [each.project_id for each in links] == [source["id"], fork["id"]]
    owned = installation.rows(select(Secret).where(Secret.project_id != 0))
    assert [each.project_id for each in owned] == [source["id"]]


def test_what_a_fork_shares_with_its_source_is_named(owner: Caller) -> None:
    manifest = MANIFEST + (
        "datasets:\n  - from: file:/data/orders.parquet\n    name: orders\n    access: read_write\n"
        "snapshots:\n  location: s3://snapshots/shop\n"
    )
    made = owner.post("/v1/projects", {"name": "shop", "manifest": manifest})
    assert made.status_code == 201, made.text
    fork = owner.post(f"/v1/projects/{made.json()['id']}/forks", {"name": "shop-2"})
    assert fork.status_code == 201, fork.text
    assert fork.json()["shared_state"] == ["snapshots.location", "datasets[orders]"]


def test_codes_of_forks(owner: Caller) -> None:
    plain = _create(owner, "plain", manifest=MANIFEST)
    placed = _create(owner, "placed", manifest=MANIFEST, region="west")
    empty = _create(owner, "empty")
    state = _create(owner, "state", manifest=MANIFEST + STATE)
    _create(owner, "taken")
    deleted = _create(owner, "deleted")
    owner.delete(f"/v1/projects/{deleted['id']}")
    location = "scheduler_state_location"
    table: list[tuple[dict[str, Any], dict[str, str], int, str | None]] = [
        (placed, {}, 400, "fork_placement_required"),
        (placed, {"region": "nowhere"}, 400, None),
        (empty, {}, 422, "fork_source_has_no_spicepod"),
        (plain, {"name": "TAKEN"}, 409, "fork_name_unavailable"),
        (plain, {"name": "deleted"}, 409, "fork_name_unavailable"),
        (plain, {location: "s3://b/a"}, 400, f"{location}_not_applicable"),
        (state, {}, 400, f"{location}_required"),
        (state, {location: "s3://state/shop"}, 400, f"{location}_overlaps_source"),
        (state, {location: "s3://state/shop/a"}, 400, f"{location}_overlaps_source"),
        (state, {location: "s3://state"}, 400, f"{location}_overlaps_source"),
        (state, {location: "imap://state/b"}, 400, f"{location}_unsupported"),
        (state, {location: "/tmp/state"}, 400, f"{location}_unsupported"),
        (plain, {"name": "a"}, 400, None),
    ]
    for source, body, status, code in table:
        answer = owner.post(f"/v1/projects/{source['id']}/forks", {"name": "fork", **body})
        assert (answer.status_code, answer.json().get("code")) == (status, code), body
    names = {each["name"] for each in owner.get("/v1/projects").json()["projects"]}
    assert names == {"plain", "placed", "empty", "state", "taken"}
    made = owner.post(
        f"/v1/projects/{state['id']}/forks", {"name": "fork", location: "s3://state/shop-2"}
    )
    assert made.status_code == 201, made.text
    assert "s3://state/shop-2" in made.json()["config"]["manifest"]


def test_a_transfer_takes_along_what_is_the_projects_own(
    installation: Installation, owner: Caller
) -> None:
    made = _create(owner, manifest=MANIFEST, region="west")
    path = f"/v1/projects/{made['id']}"
    _add_secrets(installation, made["id"])
    owner.post(f"{path}/deployments")
    moved = owner.post(f"{path}/transfer", {"org": "OTHER", "confirm": "shop"})
    assert moved.status_code == 200, moved.text
    assert owner.get(path).status_code == 404
    there = owner.get(path, headers={"x-org-name": "other"})
    assert there.json() == moved.json()
    headers = {"x-org-name": "other"}
    assert len(owner.get(f"{path}/deployments", headers=headers).json()["deployments"]) == 1
    assert installation.rows(select(SecretLink)) == []
    secrets = installation.rows(select(Secret).order_by(Secret.project_id))
    assert [each.name for each in secrets] == ["SHARED", "OWN"]
    assert secrets[0].org_id != secrets[1].org_id
    # Its name is free again where it was.
    assert _create(owner)["id"] != made["id"]


def test_a_transfer_is_confirmed_and_allowed_on_both_sides(
    installation: Installation, owner: Caller
) -> None:
    made = _create(owner, replicas=4, cluster_name="private")
    path = f"/v1/projects/{made['id']}/transfer"
    stranger = installation.add_user()
    installation.add_org("strange", stranger)
    gone = owner.post("/v1/orgs", {"name": "gone"}).json()
    owner.delete(f"/v1/orgs/{gone['id']}")
    owner.post("/v1/projects", {"name": "SHOP"}, headers={"x-org-name": "other"})
    owner.post("/v1/orgs", {"name": "small"})
    table: list[tuple[dict[str, str], int, str | None]] = [
        ({"org": "other", "confirm": "Shop"}, 400, None),
        ({"org": "acme", "confirm": "shop"}, 409, None),
        ({"org": "strange", "confirm": "shop"}, 403, "org_forbidden"),
        ({"org": "none", "confirm": "shop"}, 404, None),
        ({"org": "", "confirm": "shop"}, 400, "invalid_org_assertion"),
        ({"org": "gone", "confirm": "shop"}, 403, "org_deleted"),
        ({"org": "other", "confirm": "shop"}, 409, None),
        ({"org": "small", "confirm": "shop"}, 403, "plan_limit"),
    ]
    for body, status, code in table:
        answer = owner.post(path, body)
        assert (answer.status_code, answer.json().get("code")) == (status, code), body
    assert owner.get(f"/v1/projects/{made['id']}").json() == made


def test_every_step_is_recorded(installation: Installation, owner: Caller) -> None:
    made = _create(owner, manifest=MANIFEST)
    path = f"/v1/projects/{made['id']}"
    owner.put(path, {"description": "a"})
    owner.post(f"{path}/pause")
    owner.post(f"{path}/resume")
    owner.post(f"{path}/forks", {"name": "fork"})
    owner.post(f"{path}/transfer", {"org": "other", "confirm": "shop"})
    owner.delete(path, headers={"x-org-name": "other"})
    rows = installation.rows(select(Activity).order_by(Activity.id))
    assert [(each.action, each.resource_name) for each in rows] == [
        ("create_project", "shop"), ("update_project", "shop"), ("pause_project", "shop"),
        ("resume_project", "shop"), ("create_fork", "fork"), ("transfer_project", "shop"),
        ("delete_project", "shop"),
    ]  # fmt: skip


def _add_secrets(installation: Installation, project_id: int) -> None:
    services = installation.services

    async def add(session: Any) -> None:
        org_id = (await session.get_one(Project, project_id)).org_id
        sealer, now = services.sealer, services.now()
        of_project, of_org = Owner(org_id, project_id), Owner(org_id)
        await storing.put(session, sealer, now, of_org, "SHARED", "x")
        await storing.put(session, sealer, now, of_project, "OWN", "x")
        await linking.link(session, now, of_project, "SHARED")

    installation.change(add)
