"""Deployments and their logs."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from caraway_management.store.tables.base import Base, JsonObject


class Deployment(Base):
    """A deployment: the runtime to run, and the progress."""

    __tablename__ = "deployments"
    __table_args__ = (Index(None, "project_id", "id"), Index(None, "status", "id"))

    id: Mapped[int] = mapped_column(primary_key=True)
    org_id: Mapped[int] = mapped_column(ForeignKey("orgs.id"))
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    status: Mapped[str]
    manifest: Mapped[str]
    config: Mapped[JsonObject]
    branch: Mapped[str | None]
    commit_sha: Mapped[str | None]
    commit_message: Mapped[str | None]
    rollback_of: Mapped[int | None]
    """The deployment whose manifest and config this one takes again."""
    error_code: Mapped[str | None]
    error_message: Mapped[str | None]
    creation_source: Mapped[str]
    """`api`, `cli`, `portal`, `mcp`, `resume`, `rollback` or `secret`."""
    created_by: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class DeploymentLog(Base):
    """A line of the log of a deployment."""

    __tablename__ = "deployment_logs"
    __table_args__ = (Index(None, "deployment_id", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    deployment_id: Mapped[int] = mapped_column(ForeignKey("deployments.id"))
    at: Mapped[datetime]
    level: Mapped[str]
    source: Mapped[str]
    message: Mapped[str]
