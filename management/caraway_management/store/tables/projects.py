"""Projects, and their deployments with logs."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from caraway_management.store.tables.base import Base, JsonObject


class Project(Base):
    """A project. A deleted one keeps its name, and is revived by creating it again."""

    __tablename__ = "projects"
    __table_args__ = (
        UniqueConstraint("org_id", "name_key"),
        Index(None, "org_id", "deleted_at", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    org_id: Mapped[int] = mapped_column(ForeignKey("orgs.id"))
    name: Mapped[str]
    name_key: Mapped[str]
    description: Mapped[str] = mapped_column(default="")
    visibility: Mapped[str] = mapped_column(default="private")
    region: Mapped[str | None]
    cluster_name: Mapped[str | None]
    production_branch: Mapped[str | None]
    tags: Mapped[JsonObject]
    manifest: Mapped[str | None]
    """The YAML text, as it was written."""
    config: Mapped[JsonObject]
    """Settings of a deployment: image, replicas, resources and the like; see `domain.configs`."""
    repository: Mapped[JsonObject | None]
    forked_from: Mapped[int | None]
    deployed_id: Mapped[int | None]
    """The last deployment that succeeded; None after a deletion."""
    endpoint: Mapped[str | None]
    """The address of the runtime, once it is deployed; written by the deployer."""
    flight_endpoint: Mapped[str | None]
    revision: Mapped[int] = mapped_column(default=1)
    """Grows with every change; the ETag."""
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    paused_at: Mapped[datetime | None]
    deleted_at: Mapped[datetime | None]


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
