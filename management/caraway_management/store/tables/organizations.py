"""Organizations, their plans and their members."""

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from caraway_management.store.tables.base import Base, JsonObject


class PlanRow(Base):
    """A plan, with limits that an administrator of the installation sets."""

    __tablename__ = "plans"

    name: Mapped[str] = mapped_column(primary_key=True)
    limits: Mapped[JsonObject]
    revision: Mapped[int] = mapped_column(default=1)
    updated_at: Mapped[datetime]


class Org(Base):
    """An organization. A deleted one keeps its name."""

    __tablename__ = "orgs"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    name_key: Mapped[str] = mapped_column(unique=True)
    plan: Mapped[str] = mapped_column(ForeignKey("plans.name"))
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime]
    deleted_at: Mapped[datetime | None]


class Member(Base):
    """A user's role in an organization."""

    __tablename__ = "members"

    org_id: Mapped[int] = mapped_column(ForeignKey("orgs.id"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True, index=True)
    role: Mapped[str]
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime]


class Invitation(Base):
    """An invitation to become a member, open until it is accepted, revoked or expired."""

    __tablename__ = "invitations"

    id: Mapped[int] = mapped_column(primary_key=True)
    org_id: Mapped[int] = mapped_column(ForeignKey("orgs.id"), index=True)
    email: Mapped[str]
    role: Mapped[str]
    value_hash: Mapped[str] = mapped_column(unique=True)
    invited_by: Mapped[int]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    accepted_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
