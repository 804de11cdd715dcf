"""Operations on sessions, made by `tests.kit.management_methods`."""

from caraway.management.calls import (
    Call,
    Content,
    Document,
    Nothing,
    Operations,
    Text,
    part,
)


class SessionsRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on sessions."""

    def list_sessions(self, *, limit: int | None = None, offset: int | None = None) -> Document:
        """List the caller's sessions, the newest first. Ours."""
        return self._object(Call("GET", "/v1/sessions", query={"limit": limit, "offset": offset}))

    def create_session(self, *, username: str, password: str) -> Document:
        """Sign in. Ours: the cookie `caraway_session` and `access_token` are the same session.

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
        """End all sessions of the caller, this one too. Ours."""
        return self._nothing(Call("DELETE", "/v1/sessions"))

    def get_session(self, session_id: str) -> Document:
        """Return a session of the caller.

        `current` also has the `csrf_token` of the cookie. Ours.
        """
        return self._object(Call("GET", f"/v1/sessions/{part(session_id)}"))

    def delete_session(self, session_id: str) -> Nothing:
        """End a session of the caller: sign out with `current`. Ours."""
        return self._nothing(Call("DELETE", f"/v1/sessions/{part(session_id)}"))
