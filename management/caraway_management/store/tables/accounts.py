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
    """True if the user sets the plans of the installation."""
    home_org_id: Mapped[int | None]
    created_at: Mapped[datetime]
    deleted_at: Mapped[datetime | None]


class Identity(Base):
    """The identity of a user at an OIDC issuer."""

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
    client_id: Mapped[str | None]
    """The OAuth client that acts for the user with it; None for the user's own."""
    name: Mapped[str]
    kind: Mapped[str] = mapped_column(default="personal")
    """`personal`, `cli` for one that `caraway login` got, or `oauth` for a grant to a client."""
    hint: Mapped[str]
    """The first characters of the value, which are shown in lists."""
    value_hash: Mapped[str] = mapped_column(unique=True)
    """Of the token, or of the refresh token of a grant."""
    previous_hash: Mapped[str | None] = mapped_column(index=True)
    """Of the refresh token before: it can only be a copy, which ends the grant."""
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
    role: Mapped[str] = mapped_column(default="owner")
    """The role of the user who made it: it may do no more."""
    revision: Mapped[int] = mapped_column(default=1)
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
    """It signs nothing from then on; its signatures are valid until they expire."""


class PortalSession(Base):
    """A session of the web page."""

    __tablename__ = "sessions"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    value_hash: Mapped[str] = mapped_column(unique=True)
    address: Mapped[str]
    user_agent: Mapped[str]
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class DeviceSignIn(Base):
    """A command line that waits until its user signs it in on the web page."""

    __tablename__ = "device_sign_ins"

    id: Mapped[int] = mapped_column(primary_key=True)
    code_hash: Mapped[str] = mapped_column(unique=True)
    user_code: Mapped[str] = mapped_column(unique=True)
    address: Mapped[str]
    user_id: Mapped[int | None]
    state: Mapped[str] = mapped_column(default="pending")
    """`pending`, `approved`, `denied` or `redeemed`."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class SignIn(Base):
    """A sign-in at an OIDC issuer that has not come back yet."""

    __tablename__ = "sign_ins"
    __table_args__ = (Index(None, "expires_at"),)

    state_hash: Mapped[str] = mapped_column(primary_key=True)
    nonce: Mapped[str]
    verifier: Mapped[str]
    return_to: Mapped[str]
    user_id: Mapped[int | None]
    """The user whose account gets the identity; None to sign in."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class AuthorizationCode(Base):
    """A code with which an OAuth client gets tokens of a user, once."""

    __tablename__ = "authorization_codes"
    __table_args__ = (Index(None, "expires_at"),)

    code_hash: Mapped[str] = mapped_column(primary_key=True)
    client_id: Mapped[str]
    user_id: Mapped[int]
    org_id: Mapped[int | None]
    redirect_uri: Mapped[str]
    challenge: Mapped[str]
    scopes: Mapped[list[str]]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    token_id: Mapped[int | None]
    """The grant that it was redeemed for, which ends when the code is sent again."""


class Attempts(Base):
    """Counts attempts, such as wrong passwords of a user, since a moment."""

    __tablename__ = "attempts"
    __table_args__ = (Index(None, "since"),)

    key: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int]
    since: Mapped[datetime]
