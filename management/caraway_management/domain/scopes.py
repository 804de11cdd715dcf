"""Scopes of credentials, the roles of members, and their rights.

A scope is `<resource>:<verb>`. `write` implies `read`, and `delete` implies both. A request needs
one scope: the credential must have it, and so must the role of its owner in the organization.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache

EVERYTHING = "*"

_VERBS: Mapping[str, tuple[str, ...]] = {
    "apps": ("read", "write", "delete"),
    "deployments": ("read", "write"),
    "config": ("read", "write"),
    "secrets": ("read", "write"),
    "members": ("read", "write", "delete"),
    "monitors": ("read", "write"),
    "reactions": ("read", "write"),
    # Only in Caraway: the public interface of the peer names no scopes for these.
    "queries": ("read", "write"),
    "activity": ("read",),
    "credentials": ("read", "write"),
    "orgs": ("read", "write", "delete"),
}
SCOPES: frozenset[str] = frozenset(
    f"{resource}:{verb}" for resource, verbs in _VERBS.items() for verb in verbs
)
_IMPLIED: Mapping[str, tuple[str, ...]] = {"write": ("read",), "delete": ("read", "write")}


class Role(StrEnum):
    """The role of a member of an organization."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"


_READS = frozenset(scope for scope in SCOPES if scope.endswith(":read"))
_OF_ADMINS = frozenset(
    {
        "activity:read",
        "credentials:read",
        "credentials:write",
        "members:delete",
        "members:write",
        "monitors:write",
        "orgs:delete",
        "orgs:write",
        "reactions:write",
    }
)
_OF_ROLES: Mapping[Role, frozenset[str]] = {
    Role.OWNER: SCOPES,
    Role.ADMIN: SCOPES - {"orgs:delete"},
    Role.MEMBER: SCOPES - _OF_ADMINS,
    Role.VIEWER: _READS - {"secrets:read"} - _OF_ADMINS,
}
_RANKS = {Role.VIEWER: 0, Role.MEMBER: 1, Role.ADMIN: 2, Role.OWNER: 3}


def expand(scopes: Iterable[str]) -> frozenset[str]:
    """Return the scopes with all that they imply. Unknown ones imply nothing."""
    return _expanded(frozenset(scopes))


@cache
def _expanded(scopes: frozenset[str]) -> frozenset[str]:
    if EVERYTHING in scopes:
        return SCOPES
    implied = set(scopes & SCOPES)
    for scope in scopes & SCOPES:
        resource, _, verb = scope.partition(":")
        implied |= {f"{resource}:{other}" for other in _IMPLIED.get(verb, ())} & SCOPES
    return frozenset(implied)


def unknown(scopes: Iterable[str]) -> list[str]:
    """Return the scopes that do not exist, sorted."""
    return sorted(set(scopes) - SCOPES - {EVERYTHING})


def allowed(role: Role) -> frozenset[str]:
    """Return the scopes that members with this role may use."""
    return _OF_ROLES[role]


def outranks(role: Role, other: Role) -> bool:
    """Return whether `role` may do all that `other` may."""
    return _RANKS[role] >= _RANKS[other]
