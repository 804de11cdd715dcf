"""Users, and the credentials of users and machines. Values of credentials are kept as hashes."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from caraway_management.store.tables.base import Base


class User(Base):
    """A person."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    username: Mapped[str]
    username_key: Mapped[str] = mapped_column(unique=True)
    email: Mapped[str | None]
    password_hash: Mapped[str | None]
    is_administrator: Mapped[bool] = mapped_column(default=False)
    """Whether the user sets the plans of the installation."""
    home_org_id: Mapped[int | None]
    created_at: Mapped[datetime]
    deleted_at: Mapped[datetime | None]


class Identity(Base):
    """What an OIDC issuer calls a user."""

    __tablename__ = "identities"
    __table_args__ = (UniqueConstraint("issuer", "subject"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    issuer: Mapped[str]
    subject: Mapped[str]
    created_at: Mapped[datetime]


class Token(Base):
    """A personal access token, or the token of a signed-in command line."""

    __tablename__ = "tokens"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    org_id: Mapped[int | None]
    name: Mapped[str]
    kind: Mapped[str] = mapped_column(default="personal")
    """`personal`, or `cli` for one that `caraway login` got."""
    hint: Mapped[str]
    """The first characters of the value, which are shown in lists."""
    value_hash: Mapped[str] = mapped_column(unique=True)
    scopes: Mapped[list[str]]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class OAuthClient(Base):
    """A machine that belongs to an organization."""

    __tablename__ = "oauth_clients"

    client_id: Mapped[str] = mapped_column(primary_key=True)
    org_id: Mapped[int | None] = mapped_column(index=True)
    """None for a client that registered itself (RFC 7591) and acts for users."""
    name: Mapped[str]
    description: Mapped[str] = mapped_column(default="")
    scopes: Mapped[list[str]]
    secret_hash: Mapped[str | None]
    redirect_uris: Mapped[list[str]] = mapped_column(default=list)
    created_by: Mapped[int | None]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    deleted_at: Mapped[datetime | None]
    """Its tokens are refused from then on."""


class SigningKey(Base):
    """A key pair that signs the tokens of OAuth clients."""

    __tablename__ = "signing_keys"

    key_id: Mapped[str] = mapped_column(primary_key=True)
    public_key: Mapped[str]
    sealed_private_key: Mapped[str]
    created_at: Mapped[datetime]
    retired_at: Mapped[datetime | None]
    """It signs nothing from then on; what it signed is valid until it expires."""


class PortalSession(Base):
    """A session of the web page."""

    __tablename__ = "sessions"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    value_hash: Mapped[str] = mapped_column(unique=True)
    csrf_hash: Mapped[str]
    address: Mapped[str]
    user_agent: Mapped[str]
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class DeviceSignIn(Base):
    """A command line that waits until its user signs it in on the web page."""

    __tablename__ = "device_sign_ins"

    id: Mapped[int] = mapped_column(primary_key=True)
    code_hash: Mapped[str] = mapped_column(unique=True)
    user_code: Mapped[str] = mapped_column(unique=True)
    user_id: Mapped[int | None]
    state: Mapped[str] = mapped_column(default="pending")
    """`pending`, `approved`, `denied` or `redeemed`."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class SignIn(Base):
    """A sign-in at an OIDC issuer that has not come back yet, or an authorization code."""

    __tablename__ = "sign_ins"
    __table_args__ = (Index(None, "expires_at"),)

    state_hash: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    """`oidc`, or `code` for an authorization code of an OAuth client."""
    nonce: Mapped[str]
    verifier: Mapped[str]
    """The PKCE verifier of ours (oidc), or the challenge of the client (code)."""
    details: Mapped[list[str]]
    user_id: Mapped[int | None]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
