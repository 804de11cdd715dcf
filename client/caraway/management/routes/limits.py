"""Operations on limits, made by `tests.kit.management_methods`."""

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
