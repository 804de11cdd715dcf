from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from caraway_management.domain.scopes import Role
from caraway_management.store.tables import Activity, Org, Project
from tests.kit.management import Installation


def test_an_organization_is_created_renamed_and_deleted(installation: Installation) -> None:
    caller = installation.sign_in(installation.add_user("ann"))
    made = caller.post("/v1/orgs", {"name": "Acme"})
    assert made.status_code == 201
    id_ = made.json()["id"]
    assert made.json() == {
        "id": id_, "name": "Acme", "plan": "community", "revision": 1, "role": "owner",
        "created_at": installation.clock().isoformat(),
    }  # fmt: skip
    path = f"/v1/orgs/{id_}"
    assert caller.get(path).json() == made.json() | {"usage": {"apps": 0, "users": 1}}
    # The first organization is the one of requests that name none.
    assert caller.get("/v1/limits").status_code == 200
    renamed = caller.patch(path, {"name": "acme-2"})
    assert (renamed.status_code, renamed.json()["name"]) == (200, "acme-2")
    assert caller.get("/v1/limits", headers={"x-org-name": "ACME-2"}).status_code == 200
    assert caller.get("/v1/limits", headers={"x-org-name": "acme"}).status_code == 404
    assert caller.delete(path).status_code == 204
    for answer in (caller.get(path), caller.delete(path), caller.get(f"{path}/limits")):
        assert (answer.status_code, answer.json()["code"]) == (403, "org_deleted")
    assert caller.get("/v1/orgs").json() == {"orgs": []}
    assert caller.post("/v1/orgs", {"name": "ACME-2"}).status_code == 409
    actions = [each.action for each in installation.rows(select(Activity).order_by(Activity.id))]
    assert actions == [
        "create_organization", "update_organization", "delete_organization",
        "delete_organization", "create_organization",
    ]  # fmt: skip


def test_the_usage_of_a_plan_counts_projects_members_and_open_invitations(
    installation: Installation,
) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    installation.add_org("other", owner)
    installation.add_member(org, Role.VIEWER)
    caller = installation.sign_in(owner, org="acme")
    for name in ("shop", "gone"):
        made = caller.post("/v1/projects", {"name": name}).json()
    caller.delete(f"/v1/projects/{made['id']}")
    for email in ("a@example.com", "b@example.com"):
        invited = caller.post("/v1/invitations", {"email": email}).json()
    caller.delete(f"/v1/invitations/{invited['id']}")
    usage = caller.get(f"/v1/orgs/{org.id}").json()["usage"]
    assert usage == {"apps": 1, "users": 3}


def test_deleting_an_organization_ends_its_projects(installation: Installation) -> None:
    owner = installation.add_user()
    org, other = installation.add_org("acme", owner), installation.add_org("other", owner)
    caller = installation.sign_in(owner)
    for handle in ("acme", "other"):
        answer = caller.post("/v1/projects", {"name": "shop"}, headers={"x-org-name": handle})
        assert answer.status_code == 201
    assert caller.delete(f"/v1/orgs/{org.id}").status_code == 204
    query = select(Project.org_id).where(Project.deleted_at.is_(None))
    assert installation.rows(query) == [other.id]
    refused = caller.post("/v1/projects", {"name": "new"}, headers={"x-org-name": "acme"})
    assert (refused.status_code, refused.json()["code"]) == (403, "org_deleted")


def test_names_of_organizations_are_unique_without_case(installation: Installation) -> None:
    caller = installation.sign_in(installation.add_user())
    first = caller.post("/v1/orgs", {"name": "acme"}).json()
    second = caller.post("/v1/orgs", {"name": "umbrella"}).json()
    assert caller.post("/v1/orgs", {"name": "ACME"}).status_code == 409
    assert caller.patch(f"/v1/orgs/{second['id']}", {"name": "Acme"}).status_code == 409
    assert caller.patch(f"/v1/orgs/{first['id']}", {"name": "Acme"}).status_code == 200
    for name in ("", "a b", "a/b", "x" * 256, "\u00e4", "a\n"):
        assert caller.post("/v1/orgs", {"name": name}).status_code == 400, name


def test_of_two_creations_at_once_one_succeeds(installation: Installation) -> None:
    callers = [installation.sign_in(installation.add_user()) for _ in range(4)]
    bodies = [{"name": name} for name in ("acme", "ACME", "Acme", "acme")]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda each, body: each.post("/v1/orgs", body), callers, bodies))
    assert sorted(each.status_code for each in answers) == [201, 409, 409, 409]
    assert len(installation.rows(select(Org.id))) == 1


def test_a_credential_of_one_organization_creates_no_other(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    refused = installation.sign_in(owner, org_id=org.id).post("/v1/orgs", {"name": "new"})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    refused = installation.sign_in(owner, "apps:write").post("/v1/orgs", {"name": "new"})
    assert (refused.status_code, refused.json()["code"]) == (403, "insufficient_scope")


@pytest.mark.parametrize(
    ("role", "renames", "deletes"),
    [(Role.ADMIN, 200, 403), (Role.MEMBER, 403, 403), (Role.VIEWER, 403, 403)],
)
def test_roles_decide_what_happens_to_an_organization(
    installation: Installation, role: Role, renames: int, deletes: int
) -> None:
    org = installation.add_org("acme", installation.add_user())
    caller = installation.sign_in(installation.add_member(org, role))
    path = f"/v1/orgs/{org.id}"
    assert caller.get(path).json()["role"] == role
    assert caller.patch(path, {"name": "acme-2"}).status_code == renames
    assert caller.delete(path).status_code == deletes
    assert caller.put(f"{path}/plan", {"plan": "pro"}).status_code == 403


def test_administrators_set_the_plans_of_organizations(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner, "community")
    administrator = installation.sign_in(installation.add_user(is_administrator=True))
    path = f"/v1/orgs/{org.id}/plan"
    answer = administrator.put(path, {"plan": "pro"})
    assert (answer.status_code, answer.json()["plan"]) == (200, "pro")
    assert answer.json()["limits"]["users"] == 50
    assert installation.sign_in(owner).get("/v1/limits").json() == answer.json()["limits"]
    assert installation.rows(select(Org.plan)) == ["pro"]
    for plan in ("none", "", "a\u0000", "x" * 1_000):
        assert administrator.put(path, {"plan": plan}).status_code == 404
    assert administrator.put("/v1/orgs/999/plan", {"plan": "pro"}).status_code == 404
    refused = administrator.put("/v1/orgs/x/plan", {"plan": "pro"})
    assert refused.json()["code"] == "invalid_org_id"
