"""Tokens of Azure for this process: of an application, a workload or a managed identity."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from caraway_core.errors import CarawayError
from caraway_plugins.secrets import http_answers

_AUTHORITY = "https://login.microsoftonline.com"
_MACHINE = "http://169.254.169.254"
"""Where virtual machines of Azure ask for the tokens of their identity."""
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_PART = 2 / 3
"""The part of the life of a token after which there is another one."""


class AzureLogin:
    """Gets tokens for one resource, each before the one before expires.

    In this order: a client secret, the token file of a workload, the identity of an app, and that
    of the machine.
    """

    def __init__(
        self, title: str, resource: str, params: Mapping[str, str], environ: Mapping[str, str]
    ) -> None:
        self._title = f"a token for {title}"
        self._resource, self._params, self._environ = resource, params, environ
        self._token, self._until_s = "", 0.0

    def token(self) -> str:
        """Return a token that is valid for some time.

        Raises:
            CarawayError: there is none.
        """
        if time.monotonic() >= self._until_s:
            found = self._asked()
            self._token = str(found.get("access_token", ""))
            # Managed identities answer with a text.
            self._until_s = time.monotonic() + _PART * float(found.get("expires_in") or 0)
        return self._token

    def forget(self) -> None:
        """Get another token the next time."""
        self._until_s = 0.0

    def _asked(self) -> Mapping[str, Any]:
        tenant, client = self._value("azure_tenant_id"), self._value("azure_client_id")
        secret = self._environ.get("AZURE_CLIENT_SECRET")
        file = self._value("azure_federated_token_file")
        if secret or file:
            if not tenant or not client:
                raise CarawayError(
                    f"{self._title} cannot be read: set AZURE_TENANT_ID and AZURE_CLIENT_ID too"
                )
            proof = {"client_secret": secret} if secret else self._assertion(file)
            return self._of_application(tenant, {"client_id": client, **proof})
        return self._of_identity({"client_id": client} if client else {})

    def _assertion(self, file: str) -> dict[str, str]:
        text = http_answers.file_text(self._title, file)
        return {"client_assertion_type": _ASSERTION, "client_assertion": text}

    def _of_application(self, tenant: str, proof: Mapping[str, str]) -> Mapping[str, object]:
        authority = (self._value("azure_authority_host") or _AUTHORITY).rstrip("/")
        scope = f"{self._resource}/.default"
        form = {"grant_type": "client_credentials", "scope": scope, **proof}
        url = f"{authority}/{quote(tenant, safe='')}/oauth2/v2.0/token"
        return http_answers.call(self._title, "POST", url, {}, form=form)

    def _of_identity(self, client: Mapping[str, str]) -> Mapping[str, object]:
        endpoint, header = self._environ.get("IDENTITY_ENDPOINT"), "IDENTITY_HEADER"
        asked = {"resource": self._resource, **client}
        if endpoint and self._environ.get(header):
            headers = {"x-identity-header": self._environ[header]}
            return self._got(endpoint, headers, {"api-version": "2019-08-01", **asked})
        machine = (self._value("azure_pod_identity_authority_host") or _MACHINE).rstrip("/")
        url = f"{machine}/metadata/identity/oauth2/token"
        return self._got(url, {"metadata": "true"}, {"api-version": "2018-02-01", **asked})

    def _got(
        self, url: str, headers: Mapping[str, str], asked: Mapping[str, str]
    ) -> Mapping[str, object]:
        try:
            return http_answers.call(self._title, "GET", f"{url}?{urlencode(asked)}", headers)
        except CarawayError as exc:
            raise CarawayError(
                f"{exc.message}; outside of Azure set AZURE_TENANT_ID, AZURE_CLIENT_ID and "
                "AZURE_CLIENT_SECRET"
            ) from None

    def _value(self, name: str) -> str:
        return self._params.get(name) or self._environ.get(name.upper()) or ""
