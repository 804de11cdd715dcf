"""Operations on accounts, made by `tests.kit.management_methods`."""

from collections.abc import Sequence
from datetime import datetime

from caraway.management.calls import (
    Call,
    Content,
    Document,
    Nothing,
    Operations,
    Text,
    members,
    part,
)


class AccountsRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on accounts."""

    def create_device_sign_in(self) -> Document:
        """Begin a sign-in.

        Only in Caraway. The command line shows `user_code`, and polls with `code`.
        """
        return self._object(Call("POST", "/v1/device-sign-ins", has_key=False))

    def get_device_sign_in(self, user_code: str) -> Document:
        """Return a sign-in that waits, with its origin, so that its user can recognize it.

        Only in Caraway.
        """
        return self._object(Call("GET", f"/v1/device-sign-ins/{part(user_code)}"))

    def approve_device_sign_in(self, user_code: str) -> Document:
        """Let a command line act as the caller, who sends a session. Only in Caraway."""
        return self._object(Call("POST", f"/v1/device-sign-ins/{part(user_code)}/approve"))

    def deny_device_sign_in(self, user_code: str) -> Document:
        """Refuse a command line. Only in Caraway."""
        return self._object(Call("POST", f"/v1/device-sign-ins/{part(user_code)}/deny"))

    def exchange_device_code(self, *, code: str) -> Document:
        """Return the token of a command line: 202 while its user has not decided. Once only."""
        return self._object(
            Call("POST", "/auth/token/exchange", body={"code": code}, has_key=False)
        )

    def list_sessions(self, *, limit: int | None = None, offset: int | None = None) -> Document:
        """List the caller's sessions, the newest first. Only in Caraway."""
        return self._object(Call("GET", "/v1/sessions", query={"limit": limit, "offset": offset}))

    def create_session(self, *, username: str, password: str) -> Document:
        """Sign in.

        Only in Caraway: the cookie `caraway_session` and `access_token` are the same session.

        Requests with the cookie that change something send `csrf_token` as `X-CSRF-Token`.
        """
        return self._object(
            Call(
                "POST",
                "/v1/sessions",
                body={"username": username, "password": password},
                has_key=False,
            )
        )

    def delete_sessions(self) -> Nothing:
        """End all sessions of the caller, this one too. Only in Caraway."""
        return self._nothing(Call("DELETE", "/v1/sessions"))

    def get_session(self, session_id: str) -> Document:
        """Return a session of the caller. `current` also has the `csrf_token` of the cookie.

        Only in Caraway.
        """
        return self._object(Call("GET", f"/v1/sessions/{part(session_id)}"))

    def delete_session(self, session_id: str) -> Nothing:
        """End a session of the caller: sign out with `current`. Only in Caraway."""
        return self._nothing(Call("DELETE", f"/v1/sessions/{part(session_id)}"))

    def list_tokens(self, *, limit: int | None = None, offset: int | None = None) -> Document:
        """List the caller's tokens, the newest first, with those that expired. Only in Caraway.

        `kind` is `personal`, `cli` for one of `caraway login`, or `oauth` for what the caller
        granted to an OAuth client.
        """
        return self._object(Call("GET", "/v1/tokens", query={"limit": limit, "offset": offset}))

    def create_token(
        self,
        *,
        name: str,
        scopes: Sequence[str],
        org_id: int | None = None,
        expires_at: datetime | str | None = None,
    ) -> Document:
        """Make a personal access token.

        Only in Caraway. `token` is its value, which is shown only here.

        It has no scope, organization or lifetime that the credential which makes it lacks.
        """
        return self._object(
            Call(
                "POST",
                "/v1/tokens",
                body=members(
                    {"name": name, "scopes": scopes},
                    optional={"org_id": org_id, "expires_at": expires_at},
                ),
            )
        )

    def get_token(self, token_id: int) -> Document:
        """Return a token of the caller. Only in Caraway."""
        return self._object(Call("GET", f"/v1/tokens/{part(token_id)}"))

    def delete_token(self, token_id: int) -> Nothing:
        """Revoke a token of the caller, at once. Only in Caraway."""
        return self._nothing(Call("DELETE", f"/v1/tokens/{part(token_id)}"))

    def list_users(self, *, limit: int | None = None, offset: int | None = None) -> Document:
        """List the users of the installation, for an administrator. Only in Caraway."""
        return self._object(Call("GET", "/v1/users", query={"limit": limit, "offset": offset}))

    def create_user(
        self,
        *,
        username: str,
        password: str | None = None,
        email: str | None = None,
        is_administrator: bool | None = None,
    ) -> Document:
        """Add a user, as an administrator of the installation. Only in Caraway."""
        return self._object(
            Call(
                "POST",
                "/v1/users",
                body=members(
                    {"username": username},
                    optional={
                        "password": password,
                        "email": email,
                        "is_administrator": is_administrator,
                    },
                ),
            )
        )

    def get_user(self, user_id: int) -> Document:
        """Return a user of the installation, for an administrator. Only in Caraway."""
        return self._object(Call("GET", f"/v1/users/{part(user_id)}"))

    def delete_user(self, user_id: int) -> Nothing:
        """Delete a user, as an administrator.

        Only in Caraway. All credentials of the user end at once.
        """
        return self._nothing(Call("DELETE", f"/v1/users/{part(user_id)}"))

    def set_user_password(self, user_id: int, *, password: str) -> Nothing:
        """Set the password of a user, as an administrator.

        Only in Caraway. The user's sessions end.
        """
        return self._nothing(
            Call("PUT", f"/v1/users/{part(user_id)}/password", body={"password": password})
        )

    def get_whoami(self) -> Document:
        """Return the credential of the request with its scopes. Only in Caraway.

        `org` is the only organization that it acts for, or null.
        """
        return self._object(Call("GET", "/v1/whoami"))

    def set_password(self, *, password: str, current_password: str | None = None) -> Nothing:
        """Set the caller's password. Only in Caraway. Other sessions of the caller end."""
        return self._nothing(
            Call(
                "PUT",
                "/v1/whoami/password",
                body=members(
                    {"password": password}, optional={"current_password": current_password}
                ),
            )
        )
