"""Operations on reactions, made by `tests.kit.management_methods`."""

from collections.abc import Mapping
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


class ReactionsRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on reactions."""

    def list_reactions(
        self, project_id: int, *, limit: int | None = None, offset: int | None = None
    ) -> Document:
        """List the reactions of a project. The shape of their fields is ours."""
        return self._object(
            Call(
                "GET",
                f"/v1/projects/{part(project_id)}/reactions",
                query={"limit": limit, "offset": offset},
                names_org=True,
            )
        )

    def create_reaction(
        self,
        project_id: int,
        *,
        name: str,
        kind: str,
        targets: Mapping[str, Any],
        spec: Mapping[str, Any] | None = None,
        enabled: bool | None = None,
    ) -> Document:
        """Add a reaction: a notice of the tasks that failed, timed out or were slow in a minute.

        Or of rows: `dataset_row_match` of a `dataset` that meet `where`, and `dataset_query` of a
        `query`. The query is in SQL, and its fields are ours. It is run every minute. One that is
        too slow ten times in a row is suspended: `suspended_code` is `query_too_slow`.
        """
        return self._object(
            Call(
                "POST",
                f"/v1/projects/{part(project_id)}/reactions",
                body=members(
                    {"name": name, "kind": kind, "targets": targets},
                    optional={"spec": spec, "enabled": enabled},
                ),
                names_org=True,
            )
        )

    def get_reaction(self, project_id: int, reaction_id: str) -> Document:
        """Return a reaction."""
        return self._object(
            Call(
                "GET",
                f"/v1/projects/{part(project_id)}/reactions/{part(reaction_id)}",
                names_org=True,
            )
        )

    def update_reaction(
        self,
        project_id: int,
        reaction_id: str,
        *,
        name: str | None = None,
        spec: Mapping[str, Any] | None = None,
        targets: Mapping[str, Any] | None = None,
        enabled: bool | None = None,
        revision: int | Unset | None = UNSET,
        if_match: str | None = None,
    ) -> Document:
        """Change a reaction; its kind stays. 409 `reaction_changed` if `revision` is stale."""
        return self._object(
            Call(
                "PATCH",
                f"/v1/projects/{part(project_id)}/reactions/{part(reaction_id)}",
                body=members(
                    optional={"name": name, "spec": spec, "targets": targets, "enabled": enabled},
                    nullable={"revision": revision},
                ),
                headers={"if-match": if_match},
                names_org=True,
            )
        )

    def delete_reaction(
        self, project_id: int, reaction_id: str, *, if_match: str | None = None
    ) -> Document:
        """Delete a reaction."""
        return self._object(
            Call(
                "DELETE",
                f"/v1/projects/{part(project_id)}/reactions/{part(reaction_id)}",
                headers={"if-match": if_match},
                names_org=True,
            )
        )
