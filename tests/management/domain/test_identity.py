from dataclasses import replace

import pytest

from caraway_management.domain import identity, memberships, scopes
from caraway_management.domain.identity import Access, Credential, CredentialKind, Organization
from caraway_management.domain.refusals import RefusedError
from caraway_management.domain.scopes import Role
from tests.kit.management import BEGAN

ACME = Organization(1, "acme", "free", None)
USER = Credential(CredentialKind.USER, "c", "laptop", 7, None, scopes.expand(["apps:write"]))
MACHINE = Credential(
    CredentialKind.MACHINE, "m", "ci", None, 1, scopes.expand(["*"]), machine_role=Role.ADMIN
)
SESSION = replace(USER, kind=CredentialKind.SESSION)


def test_both_the_credential_and_the_role_need_a_scope() -> None:
    Access(USER, ACME, Role.MEMBER).require_scope("apps:read")
    with pytest.raises(RefusedError) as refused:
        Access(USER, ACME, Role.OWNER).require_scope("secrets:read")
    assert refused.value.code == "insufficient_scope"
    with pytest.raises(RefusedError, match="Role 'viewer' may not do this"):
        Access(USER, ACME, Role.VIEWER).require_scope("apps:write")


def test_roles_outrank_each_other() -> None:
    Access(USER, ACME, Role.ADMIN).require_role(Role.MEMBER)
    with pytest.raises(RefusedError, match="Role 'member' may not do this"):
        Access(USER, ACME, Role.MEMBER).require_role(Role.ADMIN)


def test_only_persons_manage_accounts_and_only_administrators_an_installation() -> None:
    assert identity.require_person(USER) == 7
    for credential in (MACHINE, replace(USER, org_id=1)):
        with pytest.raises(RefusedError, match="account"):
            identity.require_person(credential)
    assert identity.require_administrator(replace(USER, is_administrator=True)) == 7
    with pytest.raises(RefusedError, match="administrator"):
        identity.require_administrator(USER)


def test_a_request_names_an_organization_by_its_handle() -> None:
    assert identity.check_assertion(None) is None
    assert identity.check_assertion("acme") == "acme"
    with pytest.raises(RefusedError) as refused:
        identity.check_assertion("a b")
    assert refused.value.code == "invalid_org_assertion"


def test_a_session_names_its_organization() -> None:
    identity.check_presence(USER, None)
    identity.check_presence(SESSION, "acme")
    with pytest.raises(RefusedError) as refused:
        identity.check_presence(SESSION, None)
    assert refused.value.code == "org_assertion_required"


def test_access_is_that_of_the_member_or_of_the_machine() -> None:
    assert identity.check_access(USER, ACME, Role.VIEWER, None).role is Role.VIEWER
    assert identity.check_access(MACHINE, ACME, None, "acme").role is Role.ADMIN


@pytest.mark.parametrize(
    ("credential", "org", "role", "status", "code"),
    [
        (MACHINE, None, None, 403, "org_assertion_mismatch"),
        (MACHINE, replace(ACME, id=2), Role.OWNER, 403, "org_assertion_mismatch"),
        (USER, None, None, 404, None),
        (USER, ACME, None, 403, "org_forbidden"),
        (replace(USER, org_id=2), ACME, Role.OWNER, 403, "org_forbidden"),
        (USER, replace(ACME, deleted_at=BEGAN), Role.OWNER, 403, "org_deleted"),
    ],
)
def test_organizations_out_of_reach(
    credential: Credential, org: Organization | None, role: Role | None, status: int, code: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        identity.check_access(credential, org, role, "acme")
    assert (refused.value.status, refused.value.code) == (status, code)


def test_roles_and_addresses_of_members() -> None:
    assert memberships.read_roles(["admin"]) is Role.ADMIN
    assert memberships.check_email("a.b+c@example.com") == "a.b+c@example.com"
    for roles in ([], ["admin", "member"], ["king"]):
        with pytest.raises(RefusedError, match="roles"):
            memberships.read_roles(roles)
    for text in ("", "a", "a@", "a@b c", "@b.example", "a" * 65 + "@b.example", f"a@{'b' * 260}"):
        with pytest.raises(RefusedError, match="email"):
            memberships.check_email(text)


def test_nobody_gives_more_than_his_own_role() -> None:
    memberships.check_given(Access(USER, ACME, Role.ADMIN), Role.ADMIN)
    for access, role in [
        (Access(USER, ACME, Role.ADMIN), Role.OWNER),
        (Access(MACHINE, ACME, Role.OWNER), Role.OWNER),
    ]:
        with pytest.raises(RefusedError, match="cannot give"):
            memberships.check_given(access, role)


def test_owners_change_only_themselves_and_the_last_one_stays() -> None:
    owner = Access(USER, ACME, Role.OWNER)
    memberships.check_changed(owner, 7, Role.OWNER)
    memberships.check_changed(owner, 8, Role.ADMIN)
    with pytest.raises(RefusedError, match="owners cannot be changed"):
        memberships.check_changed(owner, 8, Role.OWNER)
    with pytest.raises(RefusedError, match="cannot give"):
        memberships.check_changed(Access(USER, ACME, Role.MEMBER), 8, Role.ADMIN)
    memberships.check_owners(Role.OWNER, other_owners=1)
    memberships.check_owners(Role.ADMIN, other_owners=0)
    with pytest.raises(RefusedError) as refused:
        memberships.check_owners(Role.OWNER, other_owners=0)
    assert refused.value.code == "last_owner"
