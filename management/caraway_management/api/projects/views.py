"""Projects as answers show them."""

from fastapi import Request

from caraway_management.domain import configs
from caraway_management.projects.finding import ProjectRow
from caraway_management.store.tables import Project


def view(project: Project | ProjectRow) -> dict[str, object]:
    """Return a project as JSON."""
    return {
        "id": project.id,
        "name": project.name,
        "description": project.description,
        "visibility": project.visibility,
        "created_at": project.created_at.isoformat(),
        "updated_at": project.updated_at.isoformat(),
        "paused_at": project.paused_at.isoformat() if project.paused_at else None,
        "region": project.region,
        "cluster_name": project.cluster_name,
        "endpoint": project.endpoint,
        "flight_endpoint": project.flight_endpoint,
        "production_branch": project.production_branch,
        "repository": project.repository,
        "forked_from": project.forked_from,
        "tags": project.tags,
        "revision": project.revision,
        "config": {
            "manifest": project.manifest,
            "spicepod": project.manifest,
            "manifest_left_out": bool(getattr(project, "is_manifest_left_out", False)),
            "region": project.region,
            **configs.show(project.config),
        },
    }


def key(request: Request) -> str:
    """Return the name of a list of projects: that of the path of the request."""
    return "apps" if request.url.path.startswith("/v1/apps") else "projects"
