"""Secrets of Azure Key Vault: `from: azure_keyvault:VAULT`."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from caraway_core.errors import CarawayError
from caraway_plugins.secrets import http_answers
from caraway_plugins.secrets.asked import AskedSecrets, ReadSecret
from caraway_plugins.secrets.azure_logins import AzureLogin
from caraway_plugins.secrets.http_answers import AbsentSecretError, RefusedSecretError

_VERSION = "7.4"
_USUAL_S = 300.0
"""Each reading is paid for."""
_VAULT = re.compile(r"[0-9A-Za-z-]{3,24}")
_NAME = re.compile(r"[0-9A-Za-z-]{1,127}")
_RESOURCE = "https://vault.azure.net"


class AzureKeyVault(AskedSecrets):
    """The secrets of one vault. `_` in a name stands for `-`, which names there have."""

    def __init__(
        self, params: Mapping[str, str], base_dir: Path, environ: Mapping[str, str]
    ) -> None:
        vault = params.get("path", "")
        url = params.get("azure_vault_url", "").rstrip("/")
        if not _VAULT.fullmatch(vault):
            raise CarawayError(
                "secret store 'azure_keyvault' needs the name of a vault; write "
                "'azure_keyvault:my-vault'"
            )
        title = f"the Azure key vault '{vault}'"
        url = url or f"https://{vault}.vault.azure.net"
        login = AzureLogin(title, _resource(url), params, environ)
        super().__init__(title, _Vault(title, url, login), _USUAL_S)


def _resource(url: str) -> str:
    """Return what a token is for: clouds of states have names of their own."""
    _, _, domain = (urlsplit(url).hostname or "").partition(".")
    return f"https://{domain}" if domain.startswith("vault.") else _RESOURCE


@dataclass(frozen=True, slots=True)
class _Vault:
    """Implements `SecretPlace`."""

    title: str
    url: str
    login: AzureLogin

    def read_secret(self, name: str) -> ReadSecret:
        """Read a secret of the vault."""
        written = name.replace("_", "-")
        if not _NAME.fullmatch(written):
            return ReadSecret(None)
        address = f"{self.url}/secrets/{written}?api-version={_VERSION}"
        title = f"the secret '{written}' of {self.title}"
        try:
            found = _called(title, address, self.login)
        except AbsentSecretError:
            return ReadSecret(None)
        except RefusedSecretError as exc:
            return ReadSecret(None, error=exc)
        expires = (found.get("attributes") or {}).get("exp")
        valid_s = float(expires) - time.time() if expires else 0.0
        value = found.get("value")
        return ReadSecret(
            value if isinstance(value, str) else None, valid_s if valid_s > 0 else None
        )


def _called(title: str, address: str, login: AzureLogin) -> Mapping[str, Any]:
    """Read a secret; once more if its token may have been withdrawn."""
    try:
        return http_answers.call(title, "GET", address, _headers(login))
    except RefusedSecretError:
        login.forget()
        return http_answers.call(title, "GET", address, _headers(login))


def _headers(login: AzureLogin) -> Mapping[str, str]:
    return {"authorization": f"Bearer {login.token()}"}
