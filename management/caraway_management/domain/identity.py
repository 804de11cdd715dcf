"""The sender of a request, its organization, and the scopes of both."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from caraway_management.domain import names, refusals, scopes
from caraway_management.domain.scopes import Role


class CredentialKind(StrEnum):
    """The kinds of credentials of the spec."""

    USER = "user"
    """A personal access token, or the token of a signed-in command line."""
    MACHINE = "machine"
    """The token of an OAuth client."""
    SESSION = "session"
    """A session of the web page."""


@dataclass(frozen=True, slots=True)
class Organization:
    """An organization, as requests see it."""

    id: int
    name: str
    plan: str
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class RoleInOrganization:
    """An organization, and the role of a user in it; None if the user is not a member."""

    org: Organization
    role: Role | None


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential that was presented and found valid."""

    kind: CredentialKind
    id: str
    name: str
    user_id: int | None
    """Its owner; None for a machine."""
    org_id: int | None
    """The only organization that it acts for; None for all of its owner's."""
    scopes: frozenset[str]
    """With all that they imply."""
    home_org_id: int | None = None
    """The organization that a request without `X-Org-Name` means."""
    is_administrator: bool = False
    """True if its owner administers the installation."""
    machine_role: Role = Role.OWNER
    """The role of a machine in its organization; the role of a user is that of the member."""
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    home: RoleInOrganization | None = None
    """The owner in that organization, if what found the credential has read it."""


@dataclass(frozen=True, slots=True)
class Access:
    """A credential in an organization."""

    credential: Credential
    org: Organization
    role: Role

    def require_scope(self, scope: str) -> None:
        """Check that both the credential and the role of its owner have a scope.

        Raises:
            RefusedError: one of them does not.
        """
        require_scope(self.credential, scope)
        if scope not in scopes.allowed(self.role):
            raise refusals.forbidden(f"Role '{self.role}' may not do this. Required: {scope}")

    def require_role(self, role: Role) -> None:
        """Check that the role of the owner is at least `role`.

        Raises:
            RefusedError: it is not.
        """
        if not scopes.outranks(self.role, role):
            raise refusals.forbidden(f"Role '{self.role}' may not do this. Required: {role}")


def require_scope(credential: Credential, scope: str) -> None:
    """Check that a credential has a scope.

    Raises:
        RefusedError: it does not.
    """
    if scope not in credential.scopes:
        raise refusals.insufficient_scope(scope)


def require_person(credential: Credential) -> int:
    """Return the id of the user who sends a credential that acts for all of the user's account.

    Raises:
        RefusedError: it is a machine's, or a token of one organization.
    """
    if credential.user_id is None:
        raise refusals.forbidden("a machine has no account; use a credential of a user")
    if credential.org_id is not None:
        raise refusals.forbidden("a token of one organization cannot manage the account")
    return credential.user_id


def require_administrator(credential: Credential) -> int:
    """Return the id of the administrator of the installation who sends a credential.

    Raises:
        RefusedError: the user is none.
    """
    user_id = require_person(credential)
    if not credential.is_administrator:
        raise refusals.forbidden("only an administrator of the installation may do this")
    return user_id


def check_assertion(header: str | None) -> str | None:
    """Return the organization that `X-Org-Name` names, or None without the header.

    Raises:
        RefusedError: it is blank, or names none that could exist.
    """
    if header is None or names.is_handle(header):
        return header
    raise refusals.invalid(
        "X-Org-Name must be the handle of an organization: 1 to 255 letters, digits, '.', '_' "
        "or '-'; leave it out for the organization of the credential",
        "invalid_org_assertion",
    )


def check_presence(credential: Credential, header: str | None) -> None:
    """Check that a session names the organization that it acts for.

    Raises:
        RefusedError: it does not.
    """
    if credential.kind is CredentialKind.SESSION and header is None:
        raise refusals.invalid(
            "a session acts for no organization by itself; send X-Org-Name",
            "org_assertion_required",
        )


def check_access(
    credential: Credential, org: Organization | None, role: Role | None, asserted: str | None
) -> Access:
    """Return what a credential may do in an organization that a request names.

    `org` is what the request names, and `role` what the owner of the credential is there. None of
    them exists if the name or number is unknown.

    Raises:
        RefusedError: the organization does not exist, is deleted, or is not the caller's.
    """
    is_machine = credential.kind is CredentialKind.MACHINE
    if is_machine and (org is None or org.id != credential.org_id):
        raise refusals.forbidden(
            "the credential belongs to another organization", "org_assertion_mismatch"
        )
    if org is None:
        raise refusals.not_found("organization", asserted or "")
    if is_machine:
        role = credential.machine_role
    if role is None or credential.org_id not in (None, org.id):
        raise refusals.forbidden(
            "the organization is not one that the credential can reach", "org_forbidden"
        )
    if org.deleted_at is not None:
        raise refusals.forbidden("the organization is deleted", "org_deleted")
    return Access(credential, org, role)
