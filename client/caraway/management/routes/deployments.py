"""Operations on deployments, made by `tests.kit.management_methods`."""

from datetime import datetime

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


class DeploymentsRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on deployments."""

    def list_deployments(
        self,
        project_id: int,
        *,
        status: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> Document:
        """List the deployments of a project, the newest first."""
        return self._object(
            Call(
                "GET",
                f"/v1/projects/{part(project_id)}/deployments",
                query={"status": status, "limit": limit, "offset": offset},
                names_org=True,
            )
        )

    def create_deployment(
        self,
        project_id: int,
        *,
        image: str | None = None,
        image_tag: str | None = None,
        replicas: int | None = None,
        channel: str | None = None,
        branch: str | None = None,
        commit_sha: str | None = None,
        commit_message: str | None = None,
        debug: bool | None = None,
        target_deployment_id: int | None = None,
    ) -> Document:
        """Deploy the manifest of a project, or roll back to an earlier deployment.

        Manifest and settings are a snapshot. 400 `manifest_missing` or `spicepod_paused` if there
        is nothing to run, 400 `unknown_image_tag` for an image that the installation does not
        have, and 409 `deployment_in_progress` while a deployment is queued or in progress. The
        codes are ours.

        The manifest of a project that is connected to a repository is read there: at
        `commit_sha`, at the head of `branch`, or at that of its production branch.
        """
        return self._object(
            Call(
                "POST",
                f"/v1/projects/{part(project_id)}/deployments",
                body=members(
                    optional={
                        "image": image,
                        "image_tag": image_tag,
                        "replicas": replicas,
                        "channel": channel,
                        "branch": branch,
                        "commit_sha": commit_sha,
                        "commit_message": commit_message,
                        "debug": debug,
                        "target_deployment_id": target_deployment_id,
                    }
                ),
                names_org=True,
            )
        )

    def get_deployment(
        self, project_id: int, deployment_id: int, *, wait: float | None = None
    ) -> Document:
        """Return a deployment."""
        return self._object(
            Call(
                "GET",
                f"/v1/projects/{part(project_id)}/deployments/{part(deployment_id)}",
                query={"wait": wait},
                names_org=True,
            )
        )

    def get_deployment_logs(
        self,
        project_id: int,
        deployment_id: int,
        *,
        limit: int | None = None,
        since: datetime | str | None = None,
    ) -> Document:
        """Return the log of a deployment: its states, and what hinders it."""
        return self._object(
            Call(
                "GET",
                f"/v1/projects/{part(project_id)}/deployments/{part(deployment_id)}/logs",
                query={"limit": limit, "since": since},
                names_org=True,
            )
        )
