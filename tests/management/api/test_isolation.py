"""No route gives anything of another organization away."""

import pytest

from tests.kit import management
from tests.kit.management import Caller, Installation
from tests.kit.management_routes import RouteRequest, parameters, requests

SIGNED_IN = (401, 403, 404)


def _declared() -> list[RouteRequest]:
    return list(requests(management.declared_app(), with_aliases=True))


ROUTES = _declared()


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.title)
def test_routes_need_a_credential_or_say_that_they_do_not(route: RouteRequest) -> None:
    open_routes = {
        "get_health",
        # Before there is a credential: sign-in, and OAuth with its keys and metadata.
        "create_session",
        "create_device_sign_in",
        "exchange_device_code",
        "create_access_token",
        "register_oauth_client",
        "list_signing_keys",
        "get_authorization_server",
        "get_protected_resource",
        "get_protected_mcp_endpoint",
    }
    assert route.needs_credential or route.name in open_routes, route.title


def test_ids_of_other_organizations_answer_403_or_404(installation: Installation) -> None:
    owner, stranger = installation.add_user(), installation.add_user()
    org = installation.add_org("acme", owner)
    installation.add_org("umbrella", stranger)
    project = installation.sign_in(owner).post("/v1/projects", {"name": "shop"}).json()["id"]
    ids = {"orgId": org.id, "projectId": project}
    named = {"x-project-id": str(project)}
    caller: Caller = installation.sign_in(stranger)
    wrong = []
    for route in ROUTES:
        if not parameters(route.path) or not route.needs_credential:
            continue
        answer = caller.send(
            route.method, route.at(ids), json=route.body, params=dict(route.query), headers=named
        )
        if answer.status_code not in SIGNED_IN:
            wrong.append((route.title, route.body, answer.status_code, answer.text[:200]))
    assert wrong == []
