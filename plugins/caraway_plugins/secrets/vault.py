"""Secrets of HashiCorp Vault and OpenBao: `from: vault:PATH`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from caraway_core.errors import CarawayError
from caraway_plugins.secrets import http_answers
from caraway_plugins.secrets.refreshing import ReadSecrets, RefreshedSecrets

_SERVICE_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"


class Vault(RefreshedSecrets):
    """The values of one path of a Vault, by their keys."""

    def __init__(
        self, params: Mapping[str, str], base_dir: Path, environ: Mapping[str, str]
    ) -> None:
        path = params.get("path", "").strip("/")
        if not path:
            raise CarawayError("secret store 'vault' needs a path; write 'from: vault:app/db'")
        address = params.get("vault_addr") or environ.get("VAULT_ADDR")
        if not address:
            raise CarawayError(
                "secret store 'vault': the address is missing; set params.vault_addr or VAULT_ADDR"
            )
        client = _VaultClient(f"the Vault secret '{path}'", address.rstrip("/"), params, environ)
        super().__init__(client.title, lambda: client.read(path))


class _VaultClient:
    """Reads one server. It signs in for each reading, so that no token has to be renewed."""

    def __init__(
        self, title: str, address: str, params: Mapping[str, str], environ: Mapping[str, str]
    ) -> None:
        self.title, self._address, self._params, self._environ = title, address, params, environ

    def read(self, path: str) -> ReadSecrets:
        headers = {**self._namespace(), "X-Vault-Token": self._token()}
        mount = self._params.get("vault_mount") or "secret"
        match self._params.get("vault_engine") or "kv2":
            case "kv2":
                url = f"{mount}/data/{path}"
            case "kv1":
                url = f"{mount}/{path}"
            case "dynamic":
                url = path
            case other:
                raise CarawayError(
                    f"params.vault_engine is '{other}'; set it to kv2, kv1 or dynamic"
                )
        found = self._call("GET", url, headers)
        data = found.get("data") or {}
        if url.startswith(f"{mount}/data/"):
            data = data.get("data") or {}
        lease_s = found.get("lease_duration") or None
        return ReadSecrets({name: _text(value) for name, value in data.items()}, lease_s)

    def _token(self) -> str:
        params, environ = self._params, self._environ
        if role := params.get("vault_role_id"):
            secret_id = environ.get("VAULT_SECRET_ID", "")
            return self._signed_in("approle", {"role_id": role, "secret_id": secret_id})
        if role := params.get("vault_kubernetes_role"):
            jwt_file = params.get("vault_jwt_file") or _SERVICE_TOKEN
            jwt = http_answers.file_text(self.title, jwt_file)
            return self._signed_in("kubernetes", {"role": role, "jwt": jwt})
        if file := params.get("vault_token_file"):
            return http_answers.file_text(self.title, file)
        if token := environ.get("VAULT_TOKEN"):
            return token
        raise CarawayError(
            f"{self.title} cannot be read: there is no login; set VAULT_TOKEN, "
            "params.vault_token_file, params.vault_role_id or params.vault_kubernetes_role"
        )

    def _signed_in(self, method: str, body: Mapping[str, str]) -> str:
        found = self._call("POST", f"auth/{method}/login", self._namespace(), body)
        return str((found.get("auth") or {}).get("client_token", ""))

    def _namespace(self) -> dict[str, str]:
        name = self._params.get("vault_namespace") or self._environ.get("VAULT_NAMESPACE")
        return {"X-Vault-Namespace": name} if name else {}

    def _call(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        url = f"{self._address}/v1/{path}"
        authorities = self._params.get("vault_ca_file") or self._environ.get("VAULT_CACERT")
        return http_answers.call(self.title, method, url, headers, body, authorities)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
