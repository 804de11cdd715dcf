"""Operations on api keys, made by `tests.kit.management_methods`."""

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


class ApiKeysRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on api keys."""

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
