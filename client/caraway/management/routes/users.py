"""Operations on users, made by `tests.kit.management_methods`."""

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


class UsersRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on users."""

    def list_users(self, *, limit: int | None = None, offset: int | None = None) -> Document:
        """List the users of the installation, for an administrator. Ours."""
        return self._object(Call("GET", "/v1/users", query={"limit": limit, "offset": offset}))

    def create_user(
        self,
        *,
        username: str,
        password: str | None = None,
        email: str | None = None,
        is_administrator: bool | None = None,
    ) -> Document:
        """Add a user, as an administrator of the installation. Ours."""
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
        """Return a user of the installation, for an administrator. Ours."""
        return self._object(Call("GET", f"/v1/users/{part(user_id)}"))

    def delete_user(self, user_id: int) -> Nothing:
        """Delete a user, as an administrator. Ours. All credentials of the user end at once."""
        return self._nothing(Call("DELETE", f"/v1/users/{part(user_id)}"))

    def set_user_password(self, user_id: int, *, password: str) -> Nothing:
        """Set the password of a user, as an administrator. Ours. The user's sessions end."""
        return self._nothing(
            Call("PUT", f"/v1/users/{part(user_id)}/password", body={"password": password})
        )

    def get_whoami(self) -> Document:
        """Return the credential of the request with its scopes. Ours.

        `org` is the only organization that it acts for, or null.
        """
        return self._object(Call("GET", "/v1/whoami"))

    def set_password(self, *, password: str, current_password: str | None = None) -> Nothing:
        """Set the caller's password. Ours. Other sessions of the caller end."""
        return self._nothing(
            Call(
                "PUT",
                "/v1/whoami/password",
                body=members(
                    {"password": password}, optional={"current_password": current_password}
                ),
            )
        )
