"""Pauses and resumes projects. A paused one has no runtime; its settings stay editable."""

from datetime import datetime

from caraway_management.domain import refusals
from caraway_management.projects import editing
from caraway_management.store.tables import Project


def pause(project: Project, now: datetime) -> None:
    """Pause a project.

    Raises:
        RefusedError: it is paused.
    """
    if project.paused_at is not None:
        raise refusals.conflict("the project is paused already", "project_paused")
    project.paused_at = now
    editing.touch(project, now)


def resume(project: Project, now: datetime) -> None:
    """Resume a project. It runs with the next deployment.

    Raises:
        RefusedError: it is not paused.
    """
    if project.paused_at is None:
        raise refusals.conflict("the project is not paused", "project_not_paused")
    project.paused_at = None
    editing.touch(project, now)
