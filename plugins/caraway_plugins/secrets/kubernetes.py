"""Secrets of the Kubernetes API: `from: kubernetes:NAME` reads one Secret."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from caraway_core.errors import CarawayError
from caraway_plugins.secrets import http_answers
from caraway_plugins.secrets.refreshing import ReadSecrets, RefreshedSecrets

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


class KubernetesSecret(RefreshedSecrets):
    """The values of one Secret, by their keys, as the service account of the pod may read it."""

    def __init__(
        self, params: Mapping[str, str], base_dir: Path, environ: Mapping[str, str]
    ) -> None:
        name = params.get("path", "")
        if not name:
            raise CarawayError("secret store 'kubernetes' needs a Secret; write 'kubernetes:NAME'")
        address = params.get("kubernetes_api") or _in_cluster(environ)
        if not address:
            raise CarawayError(
                "secret store 'kubernetes' works in a pod, and here is none; set "
                "params.kubernetes_api elsewhere"
            )
        title = f"the Kubernetes Secret '{name}'"
        account = params.get("kubernetes_account") or _ACCOUNT
        super().__init__(title, lambda: _read(title, address, name, account, params))


def _in_cluster(environ: Mapping[str, str]) -> str:
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host:
        return ""
    return f"https://{f'[{host}]' if ':' in host else host}:{port or 443}"


def _read(
    title: str, address: str, name: str, account: str, params: Mapping[str, str]
) -> ReadSecrets:
    # The kubelet replaces the token of a service account each hour.
    token = http_answers.file_text(title, f"{account}/token")
    namespace = params.get("kubernetes_namespace")
    namespace = namespace or http_answers.file_text(title, f"{account}/namespace")
    found = http_answers.call(
        title,
        "GET",
        f"{address}/api/v1/namespaces/{quote(namespace, safe='')}/secrets/{quote(name, safe='')}",
        {"authorization": f"Bearer {token}"},
        authorities=f"{account}/ca.crt" if address.startswith("https:") else None,
    )
    try:
        data = found.get("data") or {}
        values = {key: base64.b64decode(value).decode() for key, value in data.items()}
    except (binascii.Error, UnicodeDecodeError, TypeError, AttributeError):
        # Not chained: the message of a decoding error quotes bytes of the secret.
        raise CarawayError(f"{title} holds bytes that are not text in UTF-8") from None
    return ReadSecrets(values)
