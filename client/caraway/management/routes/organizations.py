"""Operations on organizations, made by `tests.kit.management_methods`."""

from caraway.management.calls import (
    Call,
    Content,
    Document,
    Nothing,
    Operations,
    Text,
)


class OrganizationsRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on organizations."""

    def list_organizations(self) -> Document:
        """List the organizations that the credential can reach."""
        return self._object(Call("GET", "/v1/orgs"))
