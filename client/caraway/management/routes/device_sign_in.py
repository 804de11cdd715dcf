"""Operations on device sign in, made by `tests.kit.management_methods`."""

from caraway.management.calls import (
    Call,
    Content,
    Document,
    Nothing,
    Operations,
    Text,
    part,
)


class DeviceSignInRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on device sign in."""

    def create_device_sign_in(self) -> Document:
        """Begin a sign-in. Ours. The command line shows `user_code`, and polls with `code`."""
        return self._object(Call("POST", "/v1/device-sign-ins", has_key=False))

    def get_device_sign_in(self, user_code: str) -> Document:
        """Return a sign-in that waits, with its origin, so that its user can recognize it.

        Ours.
        """
        return self._object(Call("GET", f"/v1/device-sign-ins/{part(user_code)}"))

    def approve_device_sign_in(self, user_code: str) -> Document:
        """Let a command line act as the caller, who sends a session. Ours."""
        return self._object(Call("POST", f"/v1/device-sign-ins/{part(user_code)}/approve"))

    def deny_device_sign_in(self, user_code: str) -> Document:
        """Refuse a command line. Ours."""
        return self._object(Call("POST", f"/v1/device-sign-ins/{part(user_code)}/deny"))

    def exchange_device_code(self, *, code: str) -> Document:
        """Return the token of a command line: 202 while its user has not decided. Once only."""
        return self._object(
            Call("POST", "/auth/token/exchange", body={"code": code}, has_key=False)
        )
