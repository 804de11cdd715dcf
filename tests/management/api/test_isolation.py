"""No route gives anything of another organization away, whatever the credential."""

from collections.abc import Iterator, Mapping

import pytest

from tests.kit import full_organization, management
from tests.kit.deployed_projects import MANIFEST
from tests.kit.full_organization import FullOrganization
from tests.kit.management import Caller, Installation
from tests.kit.management_credentials import KINDS, callers
from tests.kit.management_routes import RouteRequest, parameters, requests

ROUTES = list(requests(management.declared_app(), with_aliases=True))
API_KEY, KEY_OF_ACME = "API key", "API key of acme"
NOT_OF_ORGANIZATIONS = {"planName", "userCode"}
"""Plans belong to the installation; a device sign-in has no owner before its approval."""
OPEN = {
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
ORDINARY = ("personal token", "machine", "session cookie", API_KEY)
"""The kinds that are walked with by `make test`; the others are walked with by `make test-full`."""


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)]
)
def installation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """An installation with mail and a cluster of acme, which the tests share."""
    folder = tmp_path_factory.mktemp("isolation")
    with full_organization.shared_installation(request, folder) as made:
        yield made


@pytest.fixture(scope="module")
def acme(installation: Installation) -> FullOrganization:
    """The organization that others must not reach."""
    return full_organization.add_full_organization(installation)


@pytest.fixture(scope="module")
def strangers(installation: Installation, acme: FullOrganization) -> Mapping[str, Caller]:
    """A caller of another organization with each kind of credential, and API keys."""
    user = installation.add_user("stranger")
    org = installation.add_org("umbrella", user)
    found = dict(callers(installation, user, org))
    for kind, caller in found.items():
        if kind.startswith("session"):
            # A session names its organization with each request.
            caller.act_in("umbrella")
    owner = found["personal token"]
    project = owner.post("/v1/projects", {"name": "their-own", "manifest": MANIFEST}).json()["id"]
    own = owner.get(f"/v1/projects/{project}/api-keys").json()["api_key"]
    found[API_KEY] = Caller(installation.client, own)
    found[KEY_OF_ACME] = Caller(installation.client, acme.api_key)
    return found


def asked(caller: Caller, route: RouteRequest, ids: Mapping[str, object], **headers: str) -> int:
    """Send the request of a route; return its status."""
    answer = caller.send(
        route.method, route.at(ids), json=route.body, params=dict(route.query),
        headers={"x-project-id": str(ids["projectId"]), **headers},
    )  # fmt: skip
    return answer.status_code


def test_routes_need_a_credential_or_say_that_they_do_not() -> None:
    assert {route.name for route in ROUTES if not route.needs_credential} == OPEN


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind in ORDINARY else pytest.mark.full)
        for kind in (*KINDS, API_KEY, KEY_OF_ACME)
    ],
)
def test_nothing_of_other_organizations_is_reached(
    acme: FullOrganization, strangers: Mapping[str, Caller], kind: str
) -> None:
    unknown = {each for route in ROUTES for each in parameters(route.path)}
    assert unknown - set(acme.ids) <= NOT_OF_ORGANIZATIONS | {"index"}
    caller, before, wrong = strangers[kind], acme.state(), []
    expected = (401,) if kind.startswith(API_KEY) else (403, 404)
    for route in ROUTES:
        is_alias = route.path.startswith("/v1/apps") and kind != "personal token"
        if is_alias or not route.needs_credential:
            continue
        found = {}
        if set(parameters(route.path)) - NOT_OF_ORGANIZATIONS or "queries" in route.path:
            # Where the path has the organization, the header may name no other one.
            naming = {"x-org-name": "ACME"} if route.within == "path" else {}
            found["by id"] = asked(caller, route, acme.ids, **naming)
        if route.within == "header" and kind in ("personal token", "machine"):
            found["by header"] = asked(caller, route, acme.ids, **{"x-org-name": "ACME"})
        wrong += [
            (route.title, how, status) for how, status in found.items() if status not in expected
        ]
    assert wrong == []
    assert acme.state() == before


def test_bodies_name_nothing_of_other_organizations(
    acme: FullOrganization, strangers: Mapping[str, Caller]
) -> None:
    before, wrong, ids = acme.state(), [], acme.ids
    user_id = acme.owner.get("/v1/whoami").json()["user"]["id"]
    for number, (kind, caller) in enumerate(strangers.items()):
        if kind.startswith(API_KEY):
            continue
        name = f"project-{number}"
        own = f"/v1/projects/{caller.post('/v1/projects', {'name': name}).json()['id']}"
        target = {"email": {"recipientUserIds": [user_id]}}
        monitor = {"name": "m", "template": "query_failures", "spec": {}, "targets": target}
        bodies = [
            ("PUT", "/v1/secrets", {"project_id": ids["projectId"], "name": "A", "value": "b"}),
            ("POST", f"{own}/deployments", {"target_deployment_id": ids["deploymentId"]}),
            ("POST", f"{own}/secret-links", {"secretName": "TOKEN"}),
            ("POST", f"{own}/monitors", monitor),
            ("POST", f"{own}/transfer", {"org": "acme", "confirm": name}),
            ("POST", "/v1/tokens", {"name": "t", "scopes": ["*"], "org_id": ids["orgId"]}),
            ("POST", "/v1/projects", {"name": "on-blue", "cluster_name": "blue"}),
        ]
        for method, path, body in bodies:
            answer = caller.send(method, path, json=body)
            if answer.status_code not in (400, 403, 404) or "unknown field" in answer.text:
                wrong.append((kind, path, answer.status_code, answer.text[:200]))
        activity = caller.get("/v1/activity", params={"project_id": ids["projectId"]})
        if activity.json().get("activity") != []:
            wrong.append((kind, "/v1/activity", activity.status_code, activity.text[:200]))
    assert wrong == []
    assert acme.state() == before
