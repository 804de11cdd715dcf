"""Operations on tokens, made by `tests.kit.management_methods`."""

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


class TokensRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on tokens."""

    def list_tokens(self, *, limit: int | None = None, offset: int | None = None) -> Document:
        """List the caller's tokens, the newest first, with those that expired. Ours.

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
        """Make a personal access token. Ours. `token` is its value, which is shown only here.

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
        """Return a token of the caller. Ours."""
        return self._object(Call("GET", f"/v1/tokens/{part(token_id)}"))

    def delete_token(self, token_id: int) -> Nothing:
        """Revoke a token of the caller, at once. Ours."""
        return self._nothing(Call("DELETE", f"/v1/tokens/{part(token_id)}"))
