import pytest
from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain.scopes import Role
from caraway_management.store.tables import Org
from tests.kit.management import Installation
from tests.kit.management_credentials import KINDS, callers


def test_limits_are_those_of_the_plan(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("Acme", owner, "developer")
    caller = installation.sign_in(owner)
    answer = caller.get("/v1/limits")
    assert answer.status_code == 200
    assert answer.json() == {
        "apps": -1,
        "replicas": 2,
        "pods": 10,
        "users": 5,
        "api_rps": 1000,
        "request_timeout_secs": 120,
        "sql_query_timeout_secs": 90,
        "sql_concurrent_queries": 16,
        "resources": None,
    }
    assert caller.get(f"/v1/orgs/{org.id}/limits").json() == answer.json()
    pro = installation.add_org("Umbrella", owner, "pro")
    assert caller.get(f"/v1/orgs/{pro.id}/limits").json()["resources"] == {
        "max_cpu": 16,
        "max_memory_gi": 128,
    }


def test_the_table_of_errors_of_the_spec(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    other = installation.add_org("umbrella", owner)
    stranger = installation.sign_in(installation.add_user())
    caller = installation.sign_in(owner)
    limited = installation.sign_in(owner, "secrets:read")
    gone = installation.add_org("gone", owner)

    async def delete(session: object) -> None:
        await session.execute(  # type: ignore[attr-defined]
            update(Org).where(Org.id == gone.id).values(deleted_at=installation.clock())
        )

    installation.change(delete)
    path = f"/v1/orgs/{org.id}/limits"
    table = [
        (installation.anonymous(), "/v1/limits", {}, 401, None),
        (caller, "/v1/limits", {"x-org-name": ""}, 400, "invalid_org_assertion"),
        (caller, "/v1/limits", {"x-org-name": "a b"}, 400, "invalid_org_assertion"),
        (caller, "/v1/limits", {"x-org-name": "ACME"}, 200, None),
        (caller, "/v1/limits", {"x-org-name": "nobody"}, 404, None),
        (limited, "/v1/limits", {}, 403, "insufficient_scope"),
        (caller, "/v1/orgs/abc/limits", {}, 400, "invalid_org_id"),
        (caller, "/v1/orgs/0/limits", {}, 400, "invalid_org_id"),
        (caller, "/v1/orgs/-1/limits", {}, 400, "invalid_org_id"),
        (caller, f"/v1/orgs/{'9' * 30}/limits", {}, 400, "invalid_org_id"),
        (caller, "/v1/orgs/99999/limits", {}, 404, None),
        (caller, path, {"x-org-name": "umbrella"}, 400, "org_path_mismatch"),
        (caller, path, {"x-org-name": "Acme"}, 200, None),
        (stranger, path, {}, 403, "org_forbidden"),
        (caller, f"/v1/orgs/{gone.id}/limits", {}, 403, "org_deleted"),
        (caller, f"/v1/orgs/{other.id}/limits", {}, 200, None),
    ]
    for sender, route, headers, status, code in table:
        answer = sender.get(route, headers=headers)
        assert (answer.status_code, answer.json().get("code")) == (status, code), (route, headers)


OK: tuple[int, None] = (200, None)


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_errors_of_the_spec_for_each_kind_of_credential(
    installation: Installation, kind: str
) -> None:
    owner = installation.add_user()
    org, other = installation.add_org("acme", owner), installation.add_org("umbrella", owner)
    gone = installation.add_org("gone", owner)
    strange = installation.add_org("strange", installation.add_user())

    async def delete(session: AsyncSession) -> None:
        deleted = update(Org).where(Org.id == gone.id).values(deleted_at=installation.clock())
        await session.execute(deleted)

    installation.change(delete)
    caller = callers(installation, owner, org)[kind]
    limited = callers(installation, owner, org, "secrets:read")[kind]
    # The errors of credentials of one organization, and of machines, if they differ from a user's.
    is_machine, is_session = kind == "machine", kind.startswith("session")
    foreign: tuple[int, str | None] = OK
    if is_machine:
        foreign = (403, "org_assertion_mismatch")
    elif kind == "token of one organization":
        foreign = (403, "org_forbidden")
    unknown = (403, "org_assertion_mismatch") if is_machine else (404, None)
    hidden = (403, "org_assertion_mismatch") if is_machine else (403, "org_forbidden")
    deleted = foreign if foreign != OK else (403, "org_deleted")
    lacking = OK if is_session else (403, "insufficient_scope")
    path = f"/v1/orgs/{org.id}/limits"
    header = "x-org-name"
    table = [
        (caller, "/v1/limits", {}, (400, "org_assertion_required") if is_session else OK),
        (caller, "/v1/limits", {header: ""}, (400, "invalid_org_assertion")),
        (caller, "/v1/limits", {header: "a b"}, (400, "invalid_org_assertion")),
        (caller, "/v1/limits", {header: "x" * 256}, (400, "invalid_org_assertion")),
        (caller, "/v1/limits", {header: "ACME"}, OK),
        (caller, "/v1/limits", {header: "umbrella"}, foreign),
        (caller, "/v1/limits", {header: "strange"}, hidden),
        (caller, "/v1/limits", {header: "gone"}, deleted),
        (caller, "/v1/limits", {header: "nobody"}, unknown),
        (limited, "/v1/limits", {header: "acme"}, lacking),
        (caller, path, {header: "umbrella"}, (400, "org_path_mismatch")),
        (caller, path, {header: "Acme"}, OK),
        (caller, f"/v1/orgs/{other.id}/limits", {header: "umbrella"}, foreign),
        (caller, f"/v1/orgs/{strange.id}/limits", {header: "strange"}, hidden),
        (caller, f"/v1/orgs/{gone.id}/limits", {header: "gone"}, deleted),
        (caller, "/v1/orgs/99999/limits", {header: "acme"}, unknown),
        (caller, "/v1/orgs/abc/limits", {header: "acme"}, (400, "invalid_org_id")),
    ]
    for sender, route, headers, expected in table:
        answer = sender.get(route, headers=headers)
        assert (answer.status_code, answer.json().get("code")) == expected, (route, headers)
    assert caller.get("/v1/orgs").status_code == 200


def test_a_token_of_one_organization_reaches_no_other(installation: Installation) -> None:
    owner = installation.add_user()
    org, other = installation.add_org("acme", owner), installation.add_org("umbrella", owner)
    caller = installation.sign_in(owner, org_id=other.id)
    assert caller.get("/v1/limits", headers={"x-org-name": "umbrella"}).status_code == 200
    refused = caller.get(f"/v1/orgs/{org.id}/limits")
    assert (refused.status_code, refused.json()["code"]) == (403, "org_forbidden")
    assert [each["name"] for each in caller.get("/v1/orgs").json()["orgs"]] == ["umbrella"]


def test_organizations_are_listed_with_the_role(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    viewer = installation.add_member(org, Role.VIEWER)
    listed = installation.sign_in(viewer).get("/v1/orgs").json()
    assert listed == {"orgs": [{"id": org.id, "name": "acme", "role": "viewer"}]}
    assert installation.sign_in(installation.add_user()).get("/v1/orgs").json() == {"orgs": []}
