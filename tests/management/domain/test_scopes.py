"""Scopes imply others, and roles allow them."""

import pytest

from caraway_management.domain import scopes
from caraway_management.domain.scopes import EVERYTHING, SCOPES, Role


@pytest.mark.parametrize(
    ("given", "expanded"),
    [
        ([], set()),
        (["apps:read"], {"apps:read"}),
        (["apps:write"], {"apps:read", "apps:write"}),
        (["apps:delete"], {"apps:read", "apps:write", "apps:delete"}),
        (["apps:write", "orgs:read"], {"apps:read", "apps:write", "orgs:read"}),
        (["x:delete"], set()),
        (["apps:*", "apps", ":read", "activity:write"], set()),
        ([EVERYTHING], SCOPES),
        (["x:y", EVERYTHING], SCOPES),
    ],
)
def test_scopes_imply_others(given: list[str], expanded: set[str]) -> None:
    assert scopes.expand(given) == expanded


def test_unknown_scopes_are_sorted() -> None:
    assert scopes.unknown(["z:a", "apps:read", EVERYTHING, "apps:drop"]) == ["apps:drop", "z:a"]


def test_a_higher_role_may_do_all_that_a_lower_one_may() -> None:
    roles = [Role.VIEWER, Role.MEMBER, Role.ADMIN, Role.OWNER]
    for place, role in enumerate(roles):
        for other_place, other in enumerate(roles):
            assert scopes.outranks(role, other) is (place >= other_place)
            if place >= other_place:
                assert scopes.allowed(role) >= scopes.allowed(other)
    assert scopes.allowed(Role.OWNER) == SCOPES


@pytest.mark.parametrize(
    ("role", "denied"),
    [
        (Role.VIEWER, ["apps:write", "secrets:read", "activity:read", "credentials:read"]),
        (Role.MEMBER, ["members:write", "orgs:write", "credentials:write", "activity:read"]),
        (Role.ADMIN, ["orgs:delete"]),
    ],
)
def test_roles_do_not_allow(role: Role, denied: list[str]) -> None:
    assert SCOPES.issuperset(denied)
    assert scopes.allowed(role).isdisjoint(denied)


def test_a_viewer_only_reads() -> None:
    assert {scope.partition(":")[2] for scope in scopes.allowed(Role.VIEWER)} == {"read"}
