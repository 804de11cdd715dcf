"""Operations on monitors, made by `tests.kit.management_methods`."""

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


class MonitorsRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on monitors."""

    def list_cluster_monitors(
        self, cluster_name: str, *, limit: int | None = None, offset: int | None = None
    ) -> Document:
        """List the monitors of the organization on a cluster, which look at its own projects
        there.
        """
        return self._object(
            Call(
                "GET",
                f"/v1/clusters/{part(cluster_name)}/monitors",
                query={"limit": limit, "offset": offset},
                names_org=True,
            )
        )

    def create_cluster_monitor(
        self,
        cluster_name: str,
        *,
        name: str,
        template: str,
        spec: Mapping[str, Any],
        targets: Mapping[str, Any],
        enabled: bool | None = None,
    ) -> Document:
        """Add a monitor of the organization on a cluster."""
        return self._object(
            Call(
                "POST",
                f"/v1/clusters/{part(cluster_name)}/monitors",
                body=members(
                    {"name": name, "template": template, "spec": spec, "targets": targets},
                    optional={"enabled": enabled},
                ),
                names_org=True,
            )
        )

    def get_cluster_monitor(self, cluster_name: str, monitor_id: str) -> Document:
        """Return a monitor on a cluster."""
        return self._object(
            Call(
                "GET",
                f"/v1/clusters/{part(cluster_name)}/monitors/{part(monitor_id)}",
                names_org=True,
            )
        )

    def update_cluster_monitor(
        self,
        cluster_name: str,
        monitor_id: str,
        *,
        name: str | None = None,
        template: str | None = None,
        spec: Mapping[str, Any] | None = None,
        targets: Mapping[str, Any] | None = None,
        enabled: bool | None = None,
        revision: int | Unset | None = UNSET,
        if_match: str | None = None,
    ) -> Document:
        """Change a monitor on a cluster."""
        return self._object(
            Call(
                "PATCH",
                f"/v1/clusters/{part(cluster_name)}/monitors/{part(monitor_id)}",
                body=members(
                    optional={
                        "name": name,
                        "template": template,
                        "spec": spec,
                        "targets": targets,
                        "enabled": enabled,
                    },
                    nullable={"revision": revision},
                ),
                headers={"if-match": if_match},
                names_org=True,
            )
        )

    def delete_cluster_monitor(
        self, cluster_name: str, monitor_id: str, *, if_match: str | None = None
    ) -> Document:
        """Delete a monitor on a cluster."""
        return self._object(
            Call(
                "DELETE",
                f"/v1/clusters/{part(cluster_name)}/monitors/{part(monitor_id)}",
                headers={"if-match": if_match},
                names_org=True,
            )
        )

    def list_monitors(
        self, project_id: int, *, limit: int | None = None, offset: int | None = None
    ) -> Document:
        """List the monitors of a project. The shape of their fields is ours."""
        return self._object(
            Call(
                "GET",
                f"/v1/projects/{part(project_id)}/monitors",
                query={"limit": limit, "offset": offset},
                names_org=True,
            )
        )

    def create_monitor(
        self,
        project_id: int,
        *,
        name: str,
        template: str,
        spec: Mapping[str, Any],
        targets: Mapping[str, Any],
        enabled: bool | None = None,
    ) -> Document:
        """Add a monitor. Its condition is judged every 60 s."""
        return self._object(
            Call(
                "POST",
                f"/v1/projects/{part(project_id)}/monitors",
                body=members(
                    {"name": name, "template": template, "spec": spec, "targets": targets},
                    optional={"enabled": enabled},
                ),
                names_org=True,
            )
        )

    def get_monitor(self, project_id: int, monitor_id: str) -> Document:
        """Return a monitor."""
        return self._object(
            Call(
                "GET",
                f"/v1/projects/{part(project_id)}/monitors/{part(monitor_id)}",
                names_org=True,
            )
        )

    def update_monitor(
        self,
        project_id: int,
        monitor_id: str,
        *,
        name: str | None = None,
        template: str | None = None,
        spec: Mapping[str, Any] | None = None,
        targets: Mapping[str, Any] | None = None,
        enabled: bool | None = None,
        revision: int | Unset | None = UNSET,
        if_match: str | None = None,
    ) -> Document:
        """Change a monitor. 409 `monitor_changed` if it was changed since `revision` was read."""
        return self._object(
            Call(
                "PATCH",
                f"/v1/projects/{part(project_id)}/monitors/{part(monitor_id)}",
                body=members(
                    optional={
                        "name": name,
                        "template": template,
                        "spec": spec,
                        "targets": targets,
                        "enabled": enabled,
                    },
                    nullable={"revision": revision},
                ),
                headers={"if-match": if_match},
                names_org=True,
            )
        )

    def delete_monitor(
        self, project_id: int, monitor_id: str, *, if_match: str | None = None
    ) -> Document:
        """Delete a monitor."""
        return self._object(
            Call(
                "DELETE",
                f"/v1/projects/{part(project_id)}/monitors/{part(monitor_id)}",
                headers={"if-match": if_match},
                names_org=True,
            )
        )
