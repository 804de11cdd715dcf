"""Operations on projects, made by `tests.kit.management_methods`."""

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


class ProjectsRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on projects."""

    def list_projects(self, *, limit: int | None = None, offset: int | None = None) -> Document:
        """List the projects of the organization, the oldest first.

        A manifest of more than 32 KiB is left out; `config.manifest_left_out` says so (ours).
        """
        return self._object(
            Call("GET", "/v1/projects", query={"limit": limit, "offset": offset}, names_org=True)
        )

    def create_project(
        self,
        *,
        name: str,
        description: str | None = None,
        visibility: str | None = None,
        production_branch: str | None = None,
        tags: Mapping[str, Any] | None = None,
        manifest: str | Mapping[str, Any] | None = None,
        registry: str | None = None,
        image: str | None = None,
        image_tag: str | None = None,
        update_channel: str | None = None,
        version: str | None = None,
        replicas: int | None = None,
        node_group: str | None = None,
        region: str | None = None,
        cluster_name: str | None = None,
        storage_size_gb: int | None = None,
        resources: Mapping[str, Any] | None = None,
        executor: Mapping[str, Any] | None = None,
        cname: str | None = None,
        default_alerts: bool | None = None,
    ) -> Document:
        """Create a project.

        A deleted one of this name is revived, with its id and its settings.
        """
        return self._object(
            Call(
                "POST",
                "/v1/projects",
                body=members(
                    {"name": name},
                    optional={
                        "description": description,
                        "visibility": visibility,
                        "production_branch": production_branch,
                        "tags": tags,
                        "manifest": manifest,
                        "registry": registry,
                        "image": image,
                        "image_tag": image_tag,
                        "update_channel": update_channel,
                        "version": version,
                        "replicas": replicas,
                        "node_group": node_group,
                        "region": region,
                        "cluster_name": cluster_name,
                        "storage_size_gb": storage_size_gb,
                        "resources": resources,
                        "executor": executor,
                        "cname": cname,
                        "default_alerts": default_alerts,
                    },
                ),
                names_org=True,
            )
        )

    def get_project(self, project_id: int) -> Document:
        """Return a project."""
        return self._object(Call("GET", f"/v1/projects/{part(project_id)}", names_org=True))

    def update_project(
        self,
        project_id: int,
        *,
        description: str | Unset | None = UNSET,
        visibility: str | Unset | None = UNSET,
        production_branch: str | Unset | None = UNSET,
        tags: Mapping[str, Any] | Unset | None = UNSET,
        manifest: str | Mapping[str, Any] | Unset | None = UNSET,
        registry: str | Unset | None = UNSET,
        image: str | Unset | None = UNSET,
        image_tag: str | Unset | None = UNSET,
        update_channel: str | Unset | None = UNSET,
        version: str | Unset | None = UNSET,
        replicas: int | Unset | None = UNSET,
        node_group: str | Unset | None = UNSET,
        region: str | Unset | None = UNSET,
        cluster_name: str | Unset | None = UNSET,
        storage_size_gb: int | Unset | None = UNSET,
        resources: Mapping[str, Any] | Unset | None = UNSET,
        executor: Mapping[str, Any] | Unset | None = UNSET,
        revision: int | Unset | None = UNSET,
        if_match: str | None = None,
    ) -> Document:
        """Change settings of a project. What runs takes them with the next deployment."""
        return self._object(
            Call(
                "PUT",
                f"/v1/projects/{part(project_id)}",
                body=members(
                    nullable={
                        "description": description,
                        "visibility": visibility,
                        "production_branch": production_branch,
                        "tags": tags,
                        "manifest": manifest,
                        "registry": registry,
                        "image": image,
                        "image_tag": image_tag,
                        "update_channel": update_channel,
                        "version": version,
                        "replicas": replicas,
                        "node_group": node_group,
                        "region": region,
                        "cluster_name": cluster_name,
                        "storage_size_gb": storage_size_gb,
                        "resources": resources,
                        "executor": executor,
                        "revision": revision,
                    }
                ),
                headers={"if-match": if_match},
                names_org=True,
            )
        )

    def delete_project(self, project_id: int, *, if_match: str | None = None) -> Nothing:
        """Delete a project. Its runtime ends; creating it again revives it."""
        return self._nothing(
            Call(
                "DELETE",
                f"/v1/projects/{part(project_id)}",
                headers={"if-match": if_match},
                names_org=True,
            )
        )

    def pause_project(self, project_id: int) -> Document:
        """Pause a project: its runtime ends, and its settings stay editable."""
        return self._object(Call("POST", f"/v1/projects/{part(project_id)}/pause", names_org=True))

    def resume_project(self, project_id: int) -> Document:
        """Resume a project, and deploy it. `deployment_id` is null if it has no manifest."""
        return self._object(Call("POST", f"/v1/projects/{part(project_id)}/resume", names_org=True))

    def list_forks(
        self, project_id: int, *, limit: int | None = None, offset: int | None = None
    ) -> Document:
        """List the forks of a project."""
        return self._object(
            Call(
                "GET",
                f"/v1/projects/{part(project_id)}/forks",
                query={"limit": limit, "offset": offset},
                names_org=True,
            )
        )

    def create_fork(
        self,
        project_id: int,
        *,
        name: str,
        region: str | None = None,
        cluster_name: str | None = None,
        scheduler_state_location: str | None = None,
    ) -> Document:
        """Create a project with manifest and settings of another one, and deploy it.

        `shared_state` names what both projects write. Secrets of the source's own are not copied.
        """
        return self._object(
            Call(
                "POST",
                f"/v1/projects/{part(project_id)}/forks",
                body=members(
                    {"name": name},
                    optional={
                        "region": region,
                        "cluster_name": cluster_name,
                        "scheduler_state_location": scheduler_state_location,
                    },
                ),
                names_org=True,
            )
        )

    def transfer_project(self, project_id: int, *, org: str, confirm: str) -> Document:
        """Transfer a project to another organization of the caller. Only in Caraway.

        The caller administers its own, and may create projects in the other one. Secrets of the
        old organization are unlinked; the project's own go with it.
        """
        return self._object(
            Call(
                "POST",
                f"/v1/projects/{part(project_id)}/transfer",
                body={"org": org, "confirm": confirm},
                names_org=True,
            )
        )

    def connect_repository(
        self,
        project_id: int,
        *,
        repository: str,
        root_directory: str | None = None,
        production_branch: str | Unset | None = UNSET,
    ) -> Document:
        """Connect a project to a repository, and take the manifest at the head of its branch.

        While it is connected, other changes of the manifest are refused with 409
        `github_connected`.
        """
        return self._object(
            Call(
                "PUT",
                f"/v1/projects/{part(project_id)}/repository",
                body=members(
                    {"repository": repository},
                    optional={"root_directory": root_directory},
                    nullable={"production_branch": production_branch},
                ),
                names_org=True,
            )
        )

    def disconnect_repository(self, project_id: int) -> Nothing:
        """Disconnect a project from its repository.

        Its manifest stays, and can be changed again.
        """
        return self._nothing(
            Call("DELETE", f"/v1/projects/{part(project_id)}/repository", names_org=True)
        )

    def synchronize_repository(self, project_id: int) -> Document:
        """Take the manifest at the head of the branch. Nothing is deployed."""
        return self._object(
            Call("POST", f"/v1/projects/{part(project_id)}/repository/synchronize", names_org=True)
        )

    def list_instances(self, project_id: int) -> Document:
        """List the instances of a project that is deployed."""
        return self._object(
            Call("GET", f"/v1/projects/{part(project_id)}/instances", names_org=True)
        )

    def get_instance_logs(
        self, project_id: int, instance_name: str, *, tail: int | None = None
    ) -> Document:
        """Return the last lines of an instance.

        A plan shows a number of lines: 403 `plan_limit` has it as `max_tail`.
        """
        return self._object(
            Call(
                "GET",
                f"/v1/projects/{part(project_id)}/instances/{part(instance_name)}/logs",
                query={"tail": tail},
                names_org=True,
            )
        )
