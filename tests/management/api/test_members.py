from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from caraway_management.domain.scopes import Role
from caraway_management.store.tables import Invitation, Member, Org, User
from tests.kit.management import Caller, Installation


@pytest.fixture
def org(installation: Installation) -> Org:
    """An organization with the owner `ann`."""
    return installation.add_org("acme", installation.add_user("ann"))


def _as(installation: Installation, org: Org, role: Role, name: str) -> Caller:
    return installation.sign_in(installation.add_member(org, role, name))


def _roles(installation: Installation) -> dict[int, str]:
    members = installation.rows(select(Member).order_by(Member.user_id))
    return {each.user_id: each.role for each in members}


def test_members_are_added_listed_changed_and_removed(installation: Installation, org: Org) -> None:
    admin = _as(installation, org, Role.ADMIN, "bob")
    new = installation.add_user("Carl")
    added = admin.post("/v1/members", {"username": "carl"})
    assert added.status_code == 201
    assert added.json() == {
        "user_id": new.id, "username": "Carl", "roles": ["member"], "is_owner": False,
        "created_at": installation.clock().isoformat(),
    }  # fmt: skip
    listed = admin.get("/v1/members").json()["members"]
    assert [(each["username"], each["roles"]) for each in listed] == [
        ("ann", ["owner"]), ("bob", ["admin"]), ("Carl", ["member"]),
    ]  # fmt: skip
    assert admin.get("/v1/members?limit=1&offset=2").json()["members"] == [added.json()]
    path = f"/v1/members/{new.id}"
    assert admin.get(path).json() == added.json()
    changed = admin.patch(path, {"roles": ["viewer"]})
    assert (changed.status_code, changed.json()["roles"]) == (200, ["viewer"])
    carl = installation.sign_in(new)
    assert carl.get("/v1/projects").status_code == 200
    assert admin.delete(path).status_code == 204
    assert admin.get(path).status_code == 404
    assert carl.get("/v1/projects").status_code in (403, 404)
    assert carl.get("/v1/orgs").json() == {"orgs": []}


def test_who_is_added_must_exist_and_be_new(installation: Installation, org: Org) -> None:
    admin = _as(installation, org, Role.ADMIN, "bob")
    for name in ("nobody", "", "a b", "x\u0000", "x" * 500):
        assert admin.post("/v1/members", {"username": name}).status_code == 404, name
    assert admin.post("/v1/members", {"username": "ANN"}).status_code == 409
    for roles in ([], ["member", "admin"], ["king"], "member", [1], None):
        answer = admin.post("/v1/members", {"username": "ann", "roles": roles})
        assert answer.status_code == 400, roles
        assert "roles" in next(iter(answer.json()["details"]["fieldErrors"]))


def test_nobody_gives_a_role_above_the_own(installation: Installation, org: Org) -> None:
    admin = _as(installation, org, Role.ADMIN, "bob")
    member = _as(installation, org, Role.MEMBER, "carl")
    carl = max(_roles(installation))
    user = installation.add_user("dora")
    before = _roles(installation)
    for answer in (
        admin.post("/v1/members", {"username": "dora", "roles": ["owner"]}),
        admin.patch(f"/v1/members/{carl}", {"roles": ["owner"]}),
        admin.post("/v1/invitations", {"email": "d@example.com", "roles": ["owner"]}),
        member.post("/v1/members", {"username": "dora", "roles": ["viewer"]}),
        member.patch(f"/v1/members/{carl}", {"roles": ["admin"]}),
        member.post("/v1/invitations", {"email": "d@example.com", "roles": ["viewer"]}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert _roles(installation) == before
    assert admin.post("/v1/members", {"username": "dora", "roles": ["admin"]}).status_code == 201
    assert _roles(installation)[user.id] == "admin"


def test_owners_are_changed_by_themselves_and_the_last_one_stays(
    installation: Installation, org: Org
) -> None:
    ann_id = min(_roles(installation))
    ann = _sign_in(installation, ann_id)
    bob_user = installation.add_member(org, Role.ADMIN, "bob")
    bob = installation.sign_in(bob_user)
    path = f"/v1/members/{ann_id}"
    for answer in (
        bob.patch(path, {"roles": ["member"]}),
        bob.delete(path),
        ann.patch(path, {"roles": ["member"]}),
        ann.delete(path),
        ann.post(f"/v1/orgs/{org.id}/leave"),
    ):
        assert answer.status_code == 403
    assert ann.delete(path).json()["code"] == "last_owner"
    promoted = ann.patch(f"/v1/members/{bob_user.id}", {"roles": ["owner"]})
    assert (promoted.status_code, promoted.json()["is_owner"]) == (200, True)
    # One owner cannot throw out another one.
    assert ann.delete(f"/v1/members/{bob_user.id}").status_code == 403
    assert ann.post(f"/v1/orgs/{org.id}/leave").status_code == 204
    assert _roles(installation) == {bob_user.id: "owner"}
    assert bob.post(f"/v1/orgs/{org.id}/leave").json()["code"] == "last_owner"


def _sign_in(installation: Installation, user_id: int) -> Caller:
    (user,) = installation.rows(select(User).where(User.id == user_id))
    return installation.sign_in(user)


def test_members_of_every_role_may_leave(installation: Installation, org: Org) -> None:
    other = installation.add_org("other", installation.add_user("zoe"))
    for role in (Role.ADMIN, Role.MEMBER, Role.VIEWER):
        user = installation.add_member(org, role)
        caller = installation.sign_in(user)
        assert caller.post(f"/v1/orgs/{other.id}/leave").status_code == 403
        limited = installation.sign_in(user, "members:read")
        assert limited.post(f"/v1/orgs/{org.id}/leave").status_code == 403
        assert caller.post(f"/v1/orgs/{org.id}/leave").status_code == 204
        assert caller.get(f"/v1/orgs/{org.id}").json()["code"] == "org_forbidden"


def test_the_plan_limits_members_and_invitations(installation: Installation) -> None:
    owner = installation.add_user("ann")
    org = installation.add_org("acme", owner, "developer")  # 5 users
    caller = installation.sign_in(owner)
    for _ in range(2):
        installation.add_member(org, Role.MEMBER)
    assert caller.post("/v1/invitations", {"email": "a@example.com"}).status_code == 201
    last = caller.post("/v1/invitations", {"email": "b@example.com"})
    assert last.status_code == 201
    refused = caller.post("/v1/invitations", {"email": "c@example.com"})
    assert (refused.status_code, refused.json()["code"]) == (403, "plan_limit")
    users = [installation.add_user() for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        answers = list(
            pool.map(lambda each: caller.post("/v1/members", {"username": each.username}), users)
        )
    assert sorted(each.status_code for each in answers) == [201, 201, 403, 403, 403, 403]
    assert len(_roles(installation)) == 5
    late = installation.sign_in(installation.add_user())
    refused = late.post("/v1/invitations/accept", {"value": last.json()["value"]})
    assert (refused.status_code, refused.json()["code"]) == (403, "plan_limit")


def test_an_invitation_makes_a_member_once(installation: Installation, org: Org) -> None:
    admin = _as(installation, org, Role.ADMIN, "bob")
    made = admin.post("/v1/invitations", {"email": "d@example.com", "roles": ["viewer"]})
    assert made.status_code == 201
    value = made.json().pop("value")
    assert value.startswith("cwi_")
    (row,) = installation.rows(select(Invitation))
    assert value not in row.value_hash
    (listed,) = admin.get("/v1/invitations").json()["invitations"]
    assert "value" not in listed
    assert (listed["email"], listed["roles"]) == ("d@example.com", ["viewer"])
    assert admin.post("/v1/invitations", {"email": "D@example.com"}).status_code == 409
    dora = installation.sign_in(installation.add_user("dora"))
    accepted = dora.post("/v1/invitations/accept", {"value": value})
    assert accepted.status_code == 201
    assert accepted.json() == {"org": {"id": org.id, "name": "acme", "role": "viewer"}}
    assert dora.get("/v1/projects").status_code == 200
    other = installation.sign_in(installation.add_user())
    assert other.post("/v1/invitations/accept", {"value": value}).status_code == 410
    assert admin.get("/v1/invitations").json() == {"invitations": []}
    for wrong in ("", "cwi_x", value[:-1] + "x", "x" * 1_000, "\u0000"):
        assert other.post("/v1/invitations/accept", {"value": wrong}).status_code == 404


def test_invitations_end(installation: Installation, org: Org) -> None:
    admin = _as(installation, org, Role.ADMIN, "bob")
    caller = installation.sign_in(installation.add_user())

    def invite(email: str) -> tuple[int, str]:
        made = admin.post("/v1/invitations", {"email": email}).json()
        return made["id"], made["value"]

    id_, revoked = invite("a@example.com")
    assert admin.delete(f"/v1/invitations/{id_}").status_code == 204
    assert admin.delete(f"/v1/invitations/{id_}").status_code == 404
    assert caller.post("/v1/invitations/accept", {"value": revoked}).status_code == 410
    _, expired = invite("a@example.com")
    installation.clock.advance(days=7)
    assert caller.post("/v1/invitations/accept", {"value": expired}).status_code == 410
    _, value = invite("a@example.com")
    pinned = installation.add_org("other", installation.add_user("zoe"))
    limited = installation.add_member(pinned, Role.MEMBER)
    refused = installation.sign_in(limited, org_id=pinned.id).post(
        "/v1/invitations/accept", {"value": value}
    )
    assert refused.status_code == 404
    owner = installation.rows(select(Member).where(Member.role == "owner"))[0]
    signed = _sign_in(installation, owner.user_id)
    assert signed.delete(f"/v1/orgs/{org.id}").status_code == 204
    gone = caller.post("/v1/invitations/accept", {"value": value})
    assert (gone.status_code, gone.json()["code"]) == (403, "org_deleted")


@pytest.mark.parametrize(
    "email", ["", "a", "@example.com", "a@", "a b@example.com", "a@b@c", "a@x\n", "x" * 300 + "@a"]
)
def test_what_is_no_address_is_refused(installation: Installation, org: Org, email: str) -> None:
    admin = _as(installation, org, Role.ADMIN, "bob")
    answer = admin.post("/v1/invitations", {"email": email})
    assert answer.status_code == 400
    assert list(answer.json()["details"]["fieldErrors"]) == ["email"]


def test_members_of_other_organizations_do_not_exist(installation: Installation, org: Org) -> None:
    admin = _as(installation, org, Role.ADMIN, "bob")
    other = installation.add_org("other", installation.add_user("zoe"))
    member = installation.add_member(other, Role.MEMBER)
    invited = installation.sign_in(installation.add_member(other, Role.ADMIN, "yan")).post(
        "/v1/invitations", {"email": "a@example.com"}
    )
    path = f"/v1/members/{member.id}"
    for answer in (
        admin.get(path), admin.patch(path, {"roles": ["viewer"]}), admin.delete(path),
        admin.delete(f"/v1/invitations/{invited.json()['id']}"),
    ):  # fmt: skip
        assert answer.status_code == 404
    assert len(_roles(installation)) == 5
