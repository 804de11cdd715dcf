"""Operations on oauth, made by `tests.kit.management_methods`."""

from collections.abc import Sequence
from datetime import datetime

from caraway.management.calls import (
    UNSET,
    Call,
    Content,
    Document,
    Nothing,
    Operations,
    Text,
    Unset,
    members,
    part,
)


class OauthRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on oauth."""

    def create_access_token(
        self,
        *,
        grant_type: str,
        client_id: str | None = None,
        client_secret: str | None = None,
        scope: str | None = None,
        code: str | None = None,
        redirect_uri: str | None = None,
        code_verifier: str | None = None,
        refresh_token: str | None = None,
        resource: str | None = None,
    ) -> Document:
        """Give an OAuth client a token, as JSON or form, with Basic or with parameters.

        Errors are those of RFC 6749: `{error, error_description}`.
        """
        return self._object(
            Call(
                "POST",
                "/api/oauth/token",
                body=members(
                    {"grant_type": grant_type},
                    optional={
                        "client_id": client_id,
                        "client_secret": client_secret,
                        "scope": scope,
                        "code": code,
                        "redirect_uri": redirect_uri,
                        "code_verifier": code_verifier,
                        "refresh_token": refresh_token,
                        "resource": resource,
                    },
                ),
                has_key=False,
            )
        )

    def list_oauth_clients(
        self, *, limit: int | None = None, offset: int | None = None
    ) -> Document:
        """List the OAuth clients of the organization, by name. Only in Caraway."""
        return self._object(
            Call(
                "GET", "/v1/oauth-clients", query={"limit": limit, "offset": offset}, names_org=True
            )
        )

    def create_oauth_client(
        self,
        *,
        name: str,
        scopes: Sequence[str],
        description: str | None = None,
        expires_at: datetime | str | None = None,
    ) -> Document:
        """Make an OAuth client. Only in Caraway. `client_secret` is shown only here.

        It acts for this organization, with no scope that the caller lacks.
        """
        return self._object(
            Call(
                "POST",
                "/v1/oauth-clients",
                body=members(
                    {"name": name, "scopes": scopes},
                    optional={"description": description, "expires_at": expires_at},
                ),
                names_org=True,
            )
        )

    def get_oauth_client(self, client_id: str) -> Document:
        """Return an OAuth client of the organization. Only in Caraway."""
        return self._object(Call("GET", f"/v1/oauth-clients/{part(client_id)}", names_org=True))

    def update_oauth_client(
        self,
        client_id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        scopes: Sequence[str] | None = None,
        expires_at: datetime | str | Unset | None = UNSET,
        if_match: str | None = None,
    ) -> Document:
        """Change an OAuth client.

        Only in Caraway. Scopes that are taken away are gone from its tokens at once.
        """
        return self._object(
            Call(
                "PATCH",
                f"/v1/oauth-clients/{part(client_id)}",
                body=members(
                    optional={"name": name, "description": description, "scopes": scopes},
                    nullable={"expires_at": expires_at},
                ),
                headers={"if-match": if_match},
                names_org=True,
            )
        )

    def delete_oauth_client(self, client_id: str, *, if_match: str | None = None) -> Nothing:
        """Delete an OAuth client. Only in Caraway. Its tokens are refused at once."""
        return self._nothing(
            Call(
                "DELETE",
                f"/v1/oauth-clients/{part(client_id)}",
                headers={"if-match": if_match},
                names_org=True,
            )
        )

    def regenerate_oauth_client_secret(self, client_id: str) -> Document:
        """Give an OAuth client a new secret. Only in Caraway. `client_secret` is shown only here.

        The old secret gets no more tokens. Tokens that it got are valid until they expire.
        """
        return self._object(
            Call("POST", f"/v1/oauth-clients/{part(client_id)}/secret", names_org=True)
        )
