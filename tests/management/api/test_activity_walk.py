"""Every change leaves one entry in the activity log, whether it succeeds or is refused."""

from sqlalchemy import select

from caraway_management.store.tables import Activity
from tests.kit import management
from tests.kit.management import Caller, Installation
from tests.kit.management_routes import RouteRequest, requests
from tests.management.api.new_projects import new_project

CHANGES = [
    route
    for route in requests(management.declared_app(), with_aliases=True)
    if route.is_change and route.within is not None
]


def left_by(
    installation: Installation, caller: Caller, route: RouteRequest, ids: dict[str, object]
) -> tuple[int, list[Activity]]:
    """Send a request of a route; return its status and the entries that it left."""
    before = {entry.id for entry in installation.rows(select(Activity))}
    body = route.body
    if isinstance(body, dict) and "value" in body:
        # Secrets have names of their own kind.
        body = body | {"name": "SAMPLE"}
        body |= {"project_id": ids["projectId"]} if "project_id" in body else {}
    answer = caller.send(route.method, route.at(ids), json=body, params=dict(route.query))
    assert answer.status_code < 500, (route.title, answer.text)
    entries = installation.rows(select(Activity).order_by(Activity.id))
    return answer.status_code, [entry for entry in entries if entry.id not in before]


def test_refused_changes_leave_one_entry(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    caller = installation.sign_in(owner, "apps:read")
    ids: dict[str, object] = {
        "orgId": org.id,
        "projectId": new_project(installation.sign_in(owner)),
    }
    assert len(CHANGES) > 20
    for route in CHANGES:
        status, entries = left_by(installation, caller, route, ids)
        assert status == 403, route.title
        assert [(each.action, each.outcome, each.code) for each in entries] == [
            (route.name, "refused", "insufficient_scope")
        ], route.title
        assert entries[0].org_id == org.id


def test_changes_leave_one_entry_with_their_outcome(installation: Installation) -> None:
    owner = installation.add_user()
    succeeded = set()
    for number, route in enumerate(CHANGES):
        # Some of them delete their project, or the organization.
        org = installation.add_org(f"org-{number}", owner)
        caller = installation.sign_in(owner, org=org.name)
        project = new_project(caller)
        status, entries = left_by(
            installation, caller, route, {"orgId": org.id, "projectId": project}
        )
        outcome = "succeeded" if status < 400 else "refused"
        assert [(each.action, each.outcome) for each in entries] == [(route.name, outcome)], (
            route.title,
            status,
        )
        if status < 400:
            succeeded.add(route.name)
    assert {
        "update_project", "regenerate_api_keys", "set_organization_secret", "put_secrets",
        "set_project_secret", "pause_project",
    } <= succeeded  # fmt: skip
