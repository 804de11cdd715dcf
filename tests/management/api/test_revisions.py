"""ETag and If-Match: no change is lost to one that was made from an older state."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import full_organization, management
from tests.kit.full_organization import FullOrganization
from tests.kit.management import Caller, Installation

CHANGES = {
    "/v1/projects/{projectId}/monitors/{monitorId}": ("PATCH", {"enabled": False}),
    "/v1/projects/{projectId}/reactions/{reactionId}": ("PATCH", {"enabled": False}),
    "/v1/projects/{projectId}": ("PUT", {"description": "changed"}),
    "/v1/clusters/{clusterName}/monitors/{monitorId}": ("PATCH", {"enabled": False}),
    "/v1/oauth-clients/{clientId}": ("PATCH", {"description": "changed"}),
    "/v1/members/{userId}": ("PATCH", {"roles": ["viewer"]}),
    "/v1/plans/{planName}": ("PUT", {"limits": {"apps": 3}}),
    "/v1/orgs/{orgId}": ("PATCH", {"name": "acme-2"}),
}
"""A change of each resource. Its deletion follows: inner resources come before outer ones."""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation, over SQLite, which is the same to all tests here."""
    folder: Path = tmp_path_factory.mktemp("revisions")
    with management.installation(
        management.prepared_embedded_url(folder), is_prepared=True,
        platform=full_organization.PLATFORM, notices=full_organization.NOTICES,
    ) as made:  # fmt: skip
        yield made


@pytest.fixture(scope="module")
def acme(installation: Installation) -> FullOrganization:
    """An organization with one of everything, also on its cluster."""
    acme = full_organization.add_full_organization(installation)
    monitor = acme.owner.get(f"/v1/projects/{acme.ids['projectId']}/monitors").json()["monitors"][0]
    body = {key: monitor[key] for key in ("name", "template", "spec", "targets")}
    made = acme.owner.post("/v1/clusters/blue/monitors", body | {"template": "cluster_cpu"})
    acme.ids["clusterMonitorId"] = made.json()["id"]
    return acme


def place(acme: FullOrganization, template: str) -> str:
    """Return the path of a resource."""
    names = {**acme.ids, "planName": "own-plan"}
    if "clusterName" in template:
        names["monitorId"] = acme.ids["clusterMonitorId"]
    return template.format(**names)


@pytest.mark.parametrize("template", CHANGES)
def test_a_change_from_an_old_state_is_refused(
    installation: Installation, acme: FullOrganization, template: str
) -> None:
    path, (method, body) = place(acme, template), CHANGES[template]
    owner = acme.owner
    if "planName" in template:
        owner = plan_writer(installation, acme, path)
    read = owner.get(path)
    old = {"if-match": read.headers["etag"]}
    changed = owner.send(method, path, json=body, headers=old)
    assert changed.status_code == 200, changed.text
    new = {"if-match": f'"elsewhere", {changed.headers["etag"]}'}
    assert changed.headers["etag"] == owner.get(path).headers["etag"] != read.headers["etag"]
    stale = [owner.send(method, path, json=body, headers=old), owner.delete(path, headers=old)]
    assert [(each.status_code, each.json()["code"]) for each in stale] == [(412, "changed")] * 2
    assert owner.get(path).headers["etag"] == changed.headers["etag"]
    assert owner.delete(path, headers=new).is_success
    assert owner.get(path).status_code == (403 if template == "/v1/orgs/{orgId}" else 404)


def plan_writer(installation: Installation, acme: FullOrganization, path: str) -> Caller:
    """Return an administrator, who has made the plan."""
    administrator = installation.sign_in(installation.add_user("root", is_administrator=True))
    limits = acme.owner.get("/v1/plans/developer").json()["limits"]
    missing = administrator.put(path, {"limits": limits}, headers={"if-match": "*"})
    assert (missing.status_code, missing.json()["code"]) == (412, "changed")
    assert administrator.put(path, {"limits": limits}).status_code == 200
    return administrator


def test_the_description_has_if_match_where_it_is_compared() -> None:
    document = management.declared_app().openapi()
    declared = {
        (method.upper(), path)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if any(each["name"] == "if-match" for each in operation.get("parameters", ()))
        and not path.startswith("/v1/apps")
    }
    compared = {(method, path) for path, (method, _) in CHANGES.items()}
    compared |= {("DELETE", path) for path in CHANGES}
    assert declared == compared | {("PUT", "/v1/orgs/{orgId}/plan")}
