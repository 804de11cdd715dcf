"""Operations on activity, made by `tests.kit.management_methods`."""

from datetime import datetime

from caraway.management.calls import (
    Call,
    Content,
    Document,
    Nothing,
    Operations,
    Text,
    part,
)


class ActivityRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on activity."""

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
