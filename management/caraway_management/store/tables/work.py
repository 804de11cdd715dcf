"""The log of changes, and the work that is still to do."""

from datetime import datetime

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from caraway_management.store.tables.base import Base, JsonObject


class Activity(Base):
    """A change that succeeded or was refused, and its sender."""

    __tablename__ = "activity"
    # Each filter of the list has an index that is also in its order.
    __table_args__ = (
        Index(None, "org_id", "id"),
        Index(None, "org_id", "at"),
        Index(None, "org_id", "action", "id"),
        Index(None, "org_id", "actor", "id"),
        Index(None, "org_id", "project_id", "id"),
        Index(None, "org_id", "resource_id", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    org_id: Mapped[int | None]
    project_id: Mapped[int | None]
    at: Mapped[datetime]
    actor_id: Mapped[int | None]
    actor: Mapped[str]
    credential_kind: Mapped[str]
    credential_id: Mapped[str]
    action: Mapped[str]
    resource_kind: Mapped[str]
    resource_id: Mapped[str]
    resource_name: Mapped[str]
    outcome: Mapped[str]
    """`succeeded` or `refused`."""
    status: Mapped[int]
    code: Mapped[str | None]
    address: Mapped[str]
    request_id: Mapped[str]


class OutboxEntry(Base):
    """Work that a change has caused, written with it in one transaction. Done work is deleted."""

    __tablename__ = "outbox"
    __table_args__ = (Index(None, "next_at"), Index(None, "subject", "id"))

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    """Which handler does it."""
    subject: Mapped[str]
    """Entries of one subject are done in order, one at a time."""
    payload: Mapped[JsonObject]
    created_at: Mapped[datetime]
    next_at: Mapped[datetime]
    attempts: Mapped[int] = mapped_column(default=0)
    """The number of times that a worker has begun it."""
    failures: Mapped[int] = mapped_column(default=0)
    """The number of failures in a row."""
    owner: Mapped[str | None]
    owned_until: Mapped[datetime | None]
    problem: Mapped[str | None]


class Lease(Base):
    """Work that one of several instances does."""

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    until: Mapped[datetime]


class IdempotentAnswer(Base):
    """The answer to a request with an Idempotency-Key, which a repetition gets again."""

    __tablename__ = "idempotent_answers"
    __table_args__ = (Index(None, "created_at"),)

    owner: Mapped[str] = mapped_column(primary_key=True)
    """The credential."""
    key: Mapped[str] = mapped_column(primary_key=True)
    request_hash: Mapped[str]
    """Of method, path and body."""
    status: Mapped[int]
    """0 while the first request is under way."""
    sealed_body: Mapped[str]
    created_at: Mapped[datetime]
