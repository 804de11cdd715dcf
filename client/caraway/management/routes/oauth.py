"""Operations on oauth, made by `tests.kit.management_methods`."""

from caraway.management.calls import (
    Call,
    Content,
    Document,
    Nothing,
    Operations,
    Text,
    members,
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
