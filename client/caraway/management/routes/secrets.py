"""Operations on secrets, made by `tests.kit.management_methods`."""

from typing import Any

from caraway.management.calls import (
    Call,
    Content,
    Document,
    Nothing,
    Operations,
    Text,
    members,
    part,
)


class SecretsRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on secrets."""

    def put_secrets(self, body: Any) -> Document:
        """Set secrets of projects: all of them, or none if one is refused.

        Takes one secret or a list, and answers in the same way. The form is ours.
        """
        return self._object(Call("PUT", "/v1/secrets", body=body, names_org=True))

    def list_organization_secrets(self, org_id: int) -> Document:
        """List the secrets of an organization itself, with masked values. The path is ours."""
        return self._object(Call("GET", f"/v1/orgs/{part(org_id)}/secrets"))

    def set_organization_secret(self, org_id: int, *, name: str, value: str) -> Document:
        """Add a secret to an organization, or replace its value. Projects link to it.

        Only in Caraway.
        """
        return self._object(
            Call("POST", f"/v1/orgs/{part(org_id)}/secrets", body={"name": name, "value": value})
        )

    def get_organization_secret(self, org_id: int, name: str) -> Document:
        """Return a secret of an organization, with a masked value. Only in Caraway."""
        return self._object(Call("GET", f"/v1/orgs/{part(org_id)}/secrets/{part(name)}"))

    def delete_organization_secret(self, org_id: int, name: str) -> Nothing:
        """Delete a secret of an organization, and its links to projects. Only in Caraway."""
        return self._nothing(Call("DELETE", f"/v1/orgs/{part(org_id)}/secrets/{part(name)}"))

    def get_api_keys(self, project_id: int) -> Document:
        """Return both API keys of a project. Viewers may not read them (ours)."""
        return self._object(
            Call("GET", f"/v1/projects/{part(project_id)}/api-keys", names_org=True)
        )

    def regenerate_api_keys(self, project_id: int, *, key_number: int | None = None) -> Document:
        """Give one API key of a project a new value, or both. The other one stays valid.

        The runtime takes the new one within seconds, without a restart. `regenerated_key` is the
        number of the key.
        """
        return self._object(
            Call(
                "POST",
                f"/v1/projects/{part(project_id)}/api-keys",
                body=members(optional={"key_number": key_number}),
                names_org=True,
            )
        )

    def list_project_secrets(self, project_id: int) -> Document:
        """List the secrets that the runtime of a project gets, with masked values.

        `source` (ours) is `organization` for linked ones; a secret of the project hides a linked
        one.
        """
        return self._object(Call("GET", f"/v1/projects/{part(project_id)}/secrets", names_org=True))

    def set_project_secret(self, project_id: int, *, name: str, value: str) -> Document:
        """Add a secret to a project, or replace its value.

        A running runtime takes it by itself.
        """
        return self._object(
            Call(
                "POST",
                f"/v1/projects/{part(project_id)}/secrets",
                body={"name": name, "value": value},
                names_org=True,
            )
        )

    def get_project_secret(self, project_id: int, name: str) -> Document:
        """Return a secret that the runtime of a project gets, with a masked value."""
        return self._object(
            Call("GET", f"/v1/projects/{part(project_id)}/secrets/{part(name)}", names_org=True)
        )

    def delete_project_secret(self, project_id: int, name: str) -> Nothing:
        """Delete a secret of a project. A linked one of this name is in force again."""
        return self._nothing(
            Call("DELETE", f"/v1/projects/{part(project_id)}/secrets/{part(name)}", names_org=True)
        )

    def list_secret_links(self, project_id: int) -> Document:
        """List the secrets of the organization that a project uses. Only in Caraway."""
        return self._object(
            Call("GET", f"/v1/projects/{part(project_id)}/secret-links", names_org=True)
        )

    def link_secret(self, project_id: int, *, secret_name: str) -> Document:
        """Link a secret of the organization to a project. Only in Caraway."""
        return self._object(
            Call(
                "POST",
                f"/v1/projects/{part(project_id)}/secret-links",
                body={"secretName": secret_name},
                names_org=True,
            )
        )

    def unlink_secret(self, project_id: int, name: str) -> Nothing:
        """Remove the link of a secret of the organization to a project. Only in Caraway."""
        return self._nothing(
            Call(
                "DELETE",
                f"/v1/projects/{part(project_id)}/secret-links/{part(name)}",
                names_org=True,
            )
        )
