"""Operations on organizations, made by `tests.kit.management_methods`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from caraway.management.calls import (
    UNSET,
    Call,
    Content,
    Document,
    Nothing,
    Operations,
    Text,
    Unset,
    members,
    part,
)


class OrganizationsRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on organizations."""

    def list_activity(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        resource: str | None = None,
        resource_id: str | None = None,
        project_id: int | None = None,
        outcome: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Document:
        """List the changes in the organization, and the refused ones, the newest first."""
        return self._object(
            Call(
                "GET",
                "/v1/activity",
                query={
                    "actor": actor,
                    "action": action,
                    "resource": resource,
                    "resource_id": resource_id,
                    "project_id": project_id,
                    "outcome": outcome,
                    "since": since,
                    "until": until,
                    "limit": limit,
                    "cursor": cursor,
                },
                names_org=True,
            )
        )

    def get_activity(self, id: int) -> Document:
        """Return one entry of the log."""
        return self._object(Call("GET", f"/v1/activity/{part(id)}", names_org=True))

    def get_limits(self) -> Document:
        """Return the limits of the organization that the credential acts for."""
        return self._object(Call("GET", "/v1/limits", names_org=True))

    def get_organization_limits(self, org_id: int) -> Document:
        """Return the limits of an organization."""
        return self._object(Call("GET", f"/v1/orgs/{part(org_id)}/limits"))

    def list_members(self, *, limit: int | None = None, offset: int | None = None) -> Document:
        """List the members of the organization."""
        return self._object(
            Call("GET", "/v1/members", query={"limit": limit, "offset": offset}, names_org=True)
        )

    def add_member(self, *, username: str, roles: Sequence[str] | None = None) -> Document:
        """Make a user of the installation a member, with at most the role of the caller."""
        return self._object(
            Call(
                "POST",
                "/v1/members",
                body=members({"username": username}, optional={"roles": roles}),
                names_org=True,
            )
        )

    def get_member(self, user_id: int) -> Document:
        """Return a member."""
        return self._object(Call("GET", f"/v1/members/{part(user_id)}", names_org=True))

    def update_member(
        self, user_id: int, *, roles: Sequence[str], if_match: str | None = None
    ) -> Document:
        """Give a member another role. Owners are changed by themselves only."""
        return self._object(
            Call(
                "PATCH",
                f"/v1/members/{part(user_id)}",
                body={"roles": roles},
                headers={"if-match": if_match},
                names_org=True,
            )
        )

    def remove_member(self, user_id: int, *, if_match: str | None = None) -> Nothing:
        """Remove a member. Owners are removed by themselves only."""
        return self._nothing(
            Call(
                "DELETE",
                f"/v1/members/{part(user_id)}",
                headers={"if-match": if_match},
                names_org=True,
            )
        )

    def list_invitations(self, *, limit: int | None = None, offset: int | None = None) -> Document:
        """List the open invitations of the organization. Only in Caraway."""
        return self._object(
            Call("GET", "/v1/invitations", query={"limit": limit, "offset": offset}, names_org=True)
        )

    def create_invitation(self, *, email: str, roles: Sequence[str] | None = None) -> Document:
        """Invite a person for seven days. The `value` is shown once, for you to hand on.

        Only in Caraway.

        If the installation has a mail server, `is_mailed` is true: the address gets a link to
        join.
        """
        return self._object(
            Call(
                "POST",
                "/v1/invitations",
                body=members({"email": email}, optional={"roles": roles}),
                names_org=True,
            )
        )

    def revoke_invitation(self, invitation_id: int) -> Nothing:
        """Revoke an open invitation. Only in Caraway."""
        return self._nothing(
            Call("DELETE", f"/v1/invitations/{part(invitation_id)}", names_org=True)
        )

    def accept_invitation(self, *, value: str) -> Document:
        """Make the user of the credential a member of the organization that invites.

        Only in Caraway.
        """
        return self._object(Call("POST", "/v1/invitations/accept", body={"value": value}))

    def get_metrics(self) -> Text:
        """Return the last metrics of the organization's projects in the form of Prometheus.

        Only in Caraway.
        """
        return self._text(Call("GET", "/v1/metrics", accept="text/plain", names_org=True))

    def list_organizations(self) -> Document:
        """List the organizations that the credential can reach."""
        return self._object(Call("GET", "/v1/orgs"))

    def create_organization(self, *, name: str) -> Document:
        """Create an organization. Its owner is the user of the credential. Only in Caraway."""
        return self._object(Call("POST", "/v1/orgs", body={"name": name}))

    def get_organization(self, org_id: int) -> Document:
        """Return an organization, with the role of the caller and the usage of its plan.

        Only in Caraway.
        """
        return self._object(Call("GET", f"/v1/orgs/{part(org_id)}"))

    def update_organization(
        self, org_id: int, *, name: str | Unset | None = UNSET, if_match: str | None = None
    ) -> Document:
        """Change the handle of an organization. Only in Caraway."""
        return self._object(
            Call(
                "PATCH",
                f"/v1/orgs/{part(org_id)}",
                body=members(nullable={"name": name}),
                headers={"if-match": if_match},
            )
        )

    def delete_organization(self, org_id: int, *, if_match: str | None = None) -> Nothing:
        """Delete an organization. Its runtimes end, and it refuses requests from then on.

        Only in Caraway.
        """
        return self._nothing(
            Call("DELETE", f"/v1/orgs/{part(org_id)}", headers={"if-match": if_match})
        )

    def leave_organization(self, org_id: int) -> Nothing:
        """End the caller's own membership. The last owner cannot. Only in Caraway."""
        return self._nothing(Call("POST", f"/v1/orgs/{part(org_id)}/leave"))

    def set_organization_plan(
        self, org_id: int, *, plan: str, if_match: str | None = None
    ) -> Document:
        """Set the plan of any organization.

        For administrators of the installation. Only in Caraway.
        """
        return self._object(
            Call(
                "PUT",
                f"/v1/orgs/{part(org_id)}/plan",
                body={"plan": plan},
                headers={"if-match": if_match},
            )
        )

    def list_plans(self) -> Document:
        """List the plans. Only in Caraway."""
        return self._object(Call("GET", "/v1/plans"))

    def get_plan(self, plan_name: str) -> Document:
        """Return a plan. Only in Caraway."""
        return self._object(Call("GET", f"/v1/plans/{part(plan_name)}"))

    def write_plan(
        self, plan_name: str, *, limits: Mapping[str, Any], if_match: str | None = None
    ) -> Document:
        """Change limits of a plan, or make one. For administrators of the installation.

        Only in Caraway.

        The runtimes of all projects that it applies to go on with the new limits within seconds.
        """
        return self._object(
            Call(
                "PUT",
                f"/v1/plans/{part(plan_name)}",
                body={"limits": limits},
                headers={"if-match": if_match},
            )
        )

    def delete_plan(self, plan_name: str, *, if_match: str | None = None) -> Nothing:
        """Delete a plan that no organization has. For administrators of the installation.

        Only in Caraway.
        """
        return self._nothing(
            Call("DELETE", f"/v1/plans/{part(plan_name)}", headers={"if-match": if_match})
        )

    def get_project_metrics(self, project_id: int, *, window: str | None = None) -> Document:
        """Return the figures of a project's runtime over a window.

        A figure that is not known is null. `window`, `requests` and `points` are ours.
        """
        return self._object(
            Call(
                "GET",
                f"/v1/projects/{part(project_id)}/metrics",
                query={"window": window},
                names_org=True,
            )
        )
