"""An organization that has one of everything that a path can name."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import select

from caraway_management.domain.platform import Cluster, Platform
from caraway_management.domain.scopes import Role
from caraway_management.notices.settings import MailServer, NoticeSettings
from caraway_management.store.tables import Activity, Org, PortalSession
from tests.kit import management
from tests.kit.deployed_projects import MANIFEST
from tests.kit.management import Caller, Installation
from tests.kit.management_credentials import callers

CLUSTER = "blue"
PLATFORM = Platform(clusters=(Cluster(CLUSTER, "local", organizations=("acme",)),))
NOTICES = NoticeSettings(MailServer("mail.test", 25, "caraway@example.com"))
"""The settings of its installation: targets by e-mail, and a cluster of acme."""
_TARGETS = {"email": {"emails": ["ops@example.com"]}}


@dataclass(frozen=True, slots=True)
class FullOrganization:
    """The contents of the organization `acme`."""

    org: Org
    owner: Caller
    ids: dict[str, object]
    """The values of the parameters of paths, by their names."""
    api_key: str

    def state(self) -> list[object]:
        """Return all that others could have changed."""
        project = f"/v1/projects/{self.ids['projectId']}"
        paths = [
            project, f"{project}/monitors", f"{project}/reactions", f"{project}/deployments",
            f"{project}/secrets", f"{project}/secret-links", f"{project}/api-keys",
            f"/v1/orgs/{self.org.id}", f"/v1/orgs/{self.org.id}/secrets", "/v1/members",
            "/v1/invitations", "/v1/oauth-clients", "/v1/projects",
        ]  # fmt: skip
        return [self.owner.get(path).json() for path in paths]


def add_full_organization(installation: Installation) -> FullOrganization:
    """Add the organization, with a project that has one of everything."""
    user = installation.add_user("owner-of-acme")
    org = installation.add_org("acme", user)
    member = installation.add_member(org, Role.MEMBER, "member-of-acme")
    owner = installation.sign_in(user)
    callers(installation, user, org)

    def made(path: str, body: object, *, method: str = "POST") -> dict[str, object]:
        answer = owner.send(method, path, json=body)
        assert answer.status_code < 300, (path, answer.text)
        found: dict[str, object] = answer.json()
        return found

    project = made("/v1/projects", {"name": "shop", "manifest": MANIFEST})["id"]
    path = f"/v1/projects/{project}"
    monitor = {
        "name": "Failures", "template": "query_failures", "spec": {"threshold": 5},
        "targets": _TARGETS,
    }  # fmt: skip
    reaction = {"name": "Errors", "kind": "task_history_error", "targets": _TARGETS}
    secret = {"name": "TOKEN", "value": "a secret of acme"}
    made(f"/v1/orgs/{org.id}/secrets", secret)
    made(f"{path}/secrets", secret)
    made(f"{path}/secret-links", {"secretName": "TOKEN"})
    client = made("/v1/oauth-clients", {"name": "ci", "scopes": ["apps:read"]})
    ids = {
        "orgId": org.id,
        "projectId": project,
        "userId": member.id,
        "clusterName": CLUSTER,
        "name": "TOKEN",
        "instanceName": "runtime-0",
        "monitorId": made(f"{path}/monitors", monitor)["id"],
        "reactionId": made(f"{path}/reactions", reaction)["id"],
        "deploymentId": made(f"{path}/deployments", {})["id"],
        "invitationId": made("/v1/invitations", {"email": "new@example.com"})["id"],
        "clientId": client["client_id"],
        "tokenId": made("/v1/tokens", {"name": "of acme", "scopes": ["apps:read"]})["id"],
        "id": installation.rows(select(Activity.id).where(Activity.org_id == org.id))[0],
        "sessionId": installation.rows(
            select(PortalSession.id).where(PortalSession.user_id == user.id)
        )[0],
        "queryId": "00000000-0000-4000-8000-000000000000",
        "userCode": installation.anonymous().post("/v1/device-sign-ins").json()["user_code"],
    }
    installation.work()
    key = str(owner.get(f"{path}/api-keys").json()["api_key"])
    return FullOrganization(org, owner, ids, key)


@contextmanager
def shared_installation(request: pytest.FixtureRequest, folder: Path) -> Iterator[Installation]:
    """Run an installation with mail and a cluster of acme, over the store that `request` names."""
    if request.param == "sqlite":
        url = management.prepared_embedded_url(folder)
    else:
        template = request.getfixturevalue("postgres_template")
        url = management.new_postgres_url(request.getfixturevalue("postgres_server"), template)
    with management.installation(url, is_prepared=True, platform=PLATFORM, notices=NOTICES) as made:
        yield made
