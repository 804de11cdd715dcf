"""Routes of projects. The application serves each under `/v1/projects` and `/v1/apps`."""

from caraway_management.api.projects import instances, lifecycle, repository, resource

ROUTERS = (resource.router, lifecycle.router, repository.router, instances.router)
