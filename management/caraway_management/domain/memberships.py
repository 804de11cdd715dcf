"""Rules of members and their roles."""

import re
from collections.abc import Sequence
from datetime import timedelta

from caraway_management.domain import refusals, scopes
from caraway_management.domain.identity import Access, CredentialKind
from caraway_management.domain.scopes import Role

INVITATION_LIFETIME = timedelta(days=7)
MOST_INVITATIONS = 200
"""Open ones, of one organization."""
_MOST_EMAIL = 254
_EMAIL = re.compile(r"[^\s@<>,;:\"()\[\]\\\x00-\x1f\x7f]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")


def check_email(text: str) -> str:
    """Return an e-mail address. Only its form is checked.

    Raises:
        RefusedError: it has another form.
    """
    if len(text) > _MOST_EMAIL or not _EMAIL.fullmatch(text):
        raise refusals.invalid_field("email", "must be an e-mail address")
    return text


def read_roles(roles: Sequence[str]) -> Role:
    """Return the role that a list of roles stands for. It has one.

    Raises:
        RefusedError: it has none, several, or an unknown one.
    """
    if len(roles) != 1 or roles[0] not in {str(role) for role in Role}:
        raise refusals.invalid_field(
            "roles", f"must be a list with one of {', '.join(role.value for role in Role)}"
        )
    return Role(roles[0])


def check_given(access: Access, role: Role) -> None:
    """Check that a caller may give a role: at most his own. A machine makes no owners.

    Raises:
        RefusedError: the role is higher.
    """
    is_machine = access.credential.kind is CredentialKind.MACHINE
    own = Role.ADMIN if is_machine else access.role
    if not scopes.outranks(own, role):
        raise refusals.forbidden(f"a credential with the role '{own}' cannot give '{role}'")


def check_changed(access: Access, user_id: int, role: Role) -> None:
    """Check that a caller may change or remove a member. Owners change only themselves.

    Raises:
        RefusedError: the member is another owner, or has a higher role.
    """
    is_self = access.credential.user_id == user_id
    if role is Role.OWNER and not is_self:
        raise refusals.forbidden("owners cannot be changed or removed by others")
    if not is_self:
        check_given(access, role)


def check_owners(role: Role, other_owners: int) -> None:
    """Check that an organization keeps an owner when a member leaves or gets a lower role.

    Raises:
        RefusedError: the member is the last one.
    """
    if role is Role.OWNER and not other_owners:
        raise refusals.forbidden(
            "the last owner cannot leave; make another member an owner first, or delete the "
            "organization",
            "last_owner",
        )
