"""Monitors, reactions and the samples that they are judged by."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from caraway_management.store.tables.base import Base, JsonObject


class Monitor(Base):
    """A condition on the metrics of a project or of a cluster, and the targets of its notices."""

    __tablename__ = "monitors"
    __table_args__ = (UniqueConstraint("org_id", "project_id", "cluster_name", "name_key"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    org_id: Mapped[int] = mapped_column(ForeignKey("orgs.id"))
    project_id: Mapped[int] = mapped_column(default=0, index=True)
    """0 for a monitor of a cluster."""
    cluster_name: Mapped[str] = mapped_column(default="")
    name: Mapped[str]
    name_key: Mapped[str]
    template: Mapped[str]
    spec: Mapped[JsonObject]
    targets: Mapped[JsonObject]
    """Tokens in it are sealed."""
    is_enabled: Mapped[bool] = mapped_column(default=True)
    state: Mapped[str] = mapped_column(default="ok")
    """`ok`, `pending` while the condition holds for less than it must, or `firing`."""
    since: Mapped[datetime | None]
    calm_since: Mapped[datetime | None]
    """Since when the condition of a firing monitor has not held."""
    last_fired_at: Mapped[datetime | None]
    last_resolved_at: Mapped[datetime | None]
    evaluation_unavailable_reason: Mapped[str | None]
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class Reaction(Base):
    """A notice of events of a project, or of rows that match."""

    __tablename__ = "reactions"
    __table_args__ = (UniqueConstraint("project_id", "name_key"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    org_id: Mapped[int] = mapped_column(ForeignKey("orgs.id"))
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    name_key: Mapped[str]
    kind: Mapped[str]
    spec: Mapped[JsonObject]
    targets: Mapped[JsonObject]
    is_enabled: Mapped[bool] = mapped_column(default=True)
    cursor: Mapped[str | None]
    """The position up to which its events are handled."""
    state: Mapped[str] = mapped_column(default="ok")
    """As that of a monitor, if it reacts to rows; otherwise always `ok`."""
    since: Mapped[datetime | None]
    calm_since: Mapped[datetime | None]
    last_fired_at: Mapped[datetime | None]
    last_resolved_at: Mapped[datetime | None]
    evaluation_unavailable_reason: Mapped[str | None]
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class MetricSample(Base):
    """The metrics of a project's runtime at a moment."""

    __tablename__ = "metric_samples"
    __table_args__ = (Index(None, "project_id", "at"), Index(None, "at"))

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int]
    at: Mapped[datetime]
    values: Mapped[JsonObject]
