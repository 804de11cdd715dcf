"""Members and roles: no one rises above his own, and an organization keeps an owner."""

import pytest

from caraway_management.domain import memberships
from caraway_management.domain.identity import Access, Credential, CredentialKind, Organization
from caraway_management.domain.refusals import RefusedError
from caraway_management.domain.scopes import Role

ROLES = [Role.OWNER, Role.ADMIN, *(role for role in Role if role not in (Role.OWNER, Role.ADMIN))]


def access(role: Role, user_id: int | None = 1) -> Access:
    kind = CredentialKind.MACHINE if user_id is None else CredentialKind.USER
    credential = Credential(kind, "token:1", "ada", user_id, None, frozenset())
    return Access(credential, Organization(1, "acme", "free", None), role)


@pytest.mark.parametrize("given", Role)
@pytest.mark.parametrize("own", Role)
def test_role_is_given_up_to_ones_own(own: Role, given: Role) -> None:
    if ROLES.index(own) <= ROLES.index(given):
        memberships.check_given(access(own), given)
    else:
        with pytest.raises(RefusedError, match=f"cannot give '{given}'") as caught:
            memberships.check_given(access(own), given)
        assert caught.value.status == 403


def test_machine_makes_no_owners_whatever_its_role() -> None:
    memberships.check_given(access(Role.OWNER, None), Role.ADMIN)
    with pytest.raises(RefusedError):
        memberships.check_given(access(Role.OWNER, None), Role.OWNER)


def test_owners_change_only_themselves() -> None:
    memberships.check_changed(access(Role.OWNER, 1), 1, Role.OWNER)
    for own in Role:
        with pytest.raises(RefusedError, match="owners cannot be changed"):
            memberships.check_changed(access(own, 1), 2, Role.OWNER)
    with pytest.raises(RefusedError):
        memberships.check_changed(access(Role.OWNER, None), 2, Role.OWNER)


@pytest.mark.parametrize("role", Role)
def test_everyone_may_leave(role: Role) -> None:
    memberships.check_changed(access(role, 7), 7, role)


def test_members_of_a_higher_role_are_not_changed() -> None:
    lowest = ROLES[-1]
    memberships.check_changed(access(Role.ADMIN), 2, lowest)
    with pytest.raises(RefusedError):
        memberships.check_changed(access(lowest), 2, Role.ADMIN)


def test_last_owner_stays() -> None:
    memberships.check_owners(Role.OWNER, 1)
    memberships.check_owners(Role.ADMIN, 0)
    with pytest.raises(RefusedError) as caught:
        memberships.check_owners(Role.OWNER, 0)
    assert caught.value.code == "last_owner"


@pytest.mark.parametrize("roles", [[], ["owner", "admin"], ["OWNER"], [""], ["owner "], ["root"]])
def test_list_of_roles_has_one_known_role(roles: list[str]) -> None:
    with pytest.raises(RefusedError, match="must be a list with one of"):
        memberships.read_roles(roles)
    assert [memberships.read_roles([str(role)]) for role in Role] == list(Role)


@pytest.mark.parametrize(
    "email", ["a@b", "a.b+c@d-e.f", "é@example.org", "o'hara@example.org", "x" * 64 + "@b"]
)
def test_addresses_are_taken_as_they_are(email: str) -> None:
    assert memberships.check_email(email) == email


@pytest.mark.parametrize(
    "email",
    ["", "a", "@b", "a@", "a@b.", "a@.b", "a@b..c", "a b@c", "a@b c", "a@b@c", "a@b\nbcc: x@y",
     "a\r\n@b", "a@b\x00", "<a@b>", "a@b,c@d", "a;b@c", '"a"@b', "(a)@b", "x" * 65 + "@b",
     "a@" + "b" * 253, "a@" + "b." * 100_000],
)  # fmt: skip
def test_other_texts_are_no_addresses(email: str) -> None:
    with pytest.raises(RefusedError) as caught:
        memberships.check_email(email)
    assert caught.value.status == 400 and list(caught.value.fields) == ["email"]
    assert len(caught.value.message) < 100
