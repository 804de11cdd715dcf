"""Operations on organizations, made by `tests.kit.management_methods`."""

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

    def list_organizations(self) -> Document:
        """List the organizations that the credential can reach."""
        return self._object(Call("GET", "/v1/orgs"))

    def create_organization(self, *, name: str) -> Document:
        """Create an organization. Its owner is the user of the credential. Ours."""
        return self._object(Call("POST", "/v1/orgs", body={"name": name}))

    def get_organization(self, org_id: int) -> Document:
        """Return an organization, with the role of the caller and the usage of its plan. Ours."""
        return self._object(Call("GET", f"/v1/orgs/{part(org_id)}"))

    def update_organization(
        self, org_id: int, *, name: str | Unset | None = UNSET, if_match: str | None = None
    ) -> Document:
        """Change the handle of an organization. Ours."""
        return self._object(
            Call(
                "PATCH",
                f"/v1/orgs/{part(org_id)}",
                body=members(nullable={"name": name}),
                headers={"if-match": if_match},
            )
        )

    def delete_organization(self, org_id: int, *, if_match: str | None = None) -> Nothing:
        """Delete an organization. Its runtimes end, and it refuses requests from then on. Ours."""
        return self._nothing(
            Call("DELETE", f"/v1/orgs/{part(org_id)}", headers={"if-match": if_match})
        )

    def leave_organization(self, org_id: int) -> Nothing:
        """End the caller's own membership. The last owner cannot. Ours."""
        return self._nothing(Call("POST", f"/v1/orgs/{part(org_id)}/leave"))

    def set_organization_plan(
        self, org_id: int, *, plan: str, if_match: str | None = None
    ) -> Document:
        """Set the plan of any organization. For administrators of the installation. Ours."""
        return self._object(
            Call(
                "PUT",
                f"/v1/orgs/{part(org_id)}/plan",
                body={"plan": plan},
                headers={"if-match": if_match},
            )
        )
