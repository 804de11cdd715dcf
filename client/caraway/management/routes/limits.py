"""Operations on limits, made by `tests.kit.management_methods`."""

from collections.abc import Mapping
from typing import Any

from caraway.management.calls import (
    Call,
    Content,
    Document,
    Nothing,
    Operations,
    Text,
    part,
)


class LimitsRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on limits."""

    def get_limits(self) -> Document:
        """Return the limits of the organization that the credential acts for."""
        return self._object(Call("GET", "/v1/limits", names_org=True))

    def get_organization_limits(self, org_id: int) -> Document:
        """Return the limits of an organization."""
        return self._object(Call("GET", f"/v1/orgs/{part(org_id)}/limits"))

    def list_plans(self) -> Document:
        """List the plans. Ours."""
        return self._object(Call("GET", "/v1/plans"))

    def get_plan(self, plan_name: str) -> Document:
        """Return a plan. Ours."""
        return self._object(Call("GET", f"/v1/plans/{part(plan_name)}"))

    def write_plan(
        self, plan_name: str, *, limits: Mapping[str, Any], if_match: str | None = None
    ) -> Document:
        """Change limits of a plan, or make one. For administrators of the installation. Ours.

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
        """Delete a plan that no organization has. For administrators of the installation. Ours."""
        return self._nothing(
            Call("DELETE", f"/v1/plans/{part(plan_name)}", headers={"if-match": if_match})
        )
