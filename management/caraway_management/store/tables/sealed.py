"""Values that data keys seal: secrets, and the API keys of projects."""

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from caraway_management.store.tables.base import Base

OF_ORGANIZATION = 0
"""The project id of secrets that belong to the organization itself."""


class DataKey(Base):
    """A key that seals values. It is itself sealed by a key-encryption key."""

    __tablename__ = "data_keys"

    id: Mapped[int] = mapped_column(primary_key=True)
    key_encryption_key_id: Mapped[str]
    wrapped: Mapped[str]
    created_at: Mapped[datetime]
    retired_at: Mapped[datetime | None]


class Secret(Base):
    """A secret of an organization or of a project."""

    __tablename__ = "secrets"
    __table_args__ = (UniqueConstraint("org_id", "project_id", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    org_id: Mapped[int] = mapped_column(ForeignKey("orgs.id"))
    project_id: Mapped[int] = mapped_column(default=OF_ORGANIZATION)
    name: Mapped[str]
    sealed: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class SecretLink(Base):
    """A secret of the organization that a project uses."""

    __tablename__ = "secret_links"

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"), primary_key=True)
    secret_id: Mapped[int] = mapped_column(ForeignKey("secrets.id"), primary_key=True, index=True)
    created_at: Mapped[datetime]


class ApiKey(Base):
    """One of the two keys of a project's runtime."""

    __tablename__ = "api_keys"

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    value_hash: Mapped[str] = mapped_column(unique=True)
    sealed: Mapped[str]
    created_at: Mapped[datetime]
