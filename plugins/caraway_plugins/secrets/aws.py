"""Secrets of AWS Secrets Manager: `from: aws_secrets_manager:NAME`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from caraway_core.errors import CarawayError
from caraway_plugins.secrets.refreshing import ReadSecrets, RefreshedSecrets

_TIMEOUT_S = 10
_USUAL_S = 300.0
"""Each reading is paid for."""
_LOGIN = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_DENIED = frozenset(
    {"AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException",
     "ExpiredTokenException", "MissingAuthenticationTokenException"}
)  # fmt: skip


class AwsSecretsManager(RefreshedSecrets):
    """The values of one secret that is a JSON object, by key; of a text, the value `value`."""

    def __init__(
        self, params: Mapping[str, str], base_dir: Path, environ: Mapping[str, str]
    ) -> None:
        name = params.get("path", "")
        if not name:
            raise CarawayError(
                "secret store 'aws_secrets_manager' needs a secret; write "
                "'aws_secrets_manager:NAME'"
            )
        title = f"the secret '{name}' of AWS"
        login = {key: environ[key.upper()] for key in _LOGIN if environ.get(key.upper())}
        login |= {key: params[key] for key in _LOGIN if key in params}
        client = _client(title, params, login)
        super().__init__(title, lambda: _read(title, client, name), _USUAL_S)


def _client(title: str, params: Mapping[str, str], login: Mapping[str, str]) -> Any:
    # boto3 takes a fifth of a second to import, and only this store needs it.
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    # Any: keyword arguments of several types.
    options: dict[str, Any] = {
        "region_name": params.get("aws_region"),
        "endpoint_url": params.get("aws_endpoint"),
        "config": Config(
            connect_timeout=_TIMEOUT_S, read_timeout=_TIMEOUT_S, retries={"total_max_attempts": 2}
        ),
        **login,
    }
    try:
        return boto3.session.Session().client("secretsmanager", **options)
    except (BotoCoreError, ValueError) as exc:
        # Not chained: such errors may quote the login.
        raise CarawayError(
            f"{title} cannot be read: {type(exc).__name__}; check params.aws_region or "
            "AWS_DEFAULT_REGION, params.aws_endpoint and the login"
        ) from None


def _read(title: str, client: Any, name: str) -> ReadSecrets:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        text = client.get_secret_value(SecretId=name).get("SecretString")
    except ClientError as exc:
        code = exc.response.get("Error", {}).get("Code", "")
        if code == "ResourceNotFoundException":
            raise CarawayError(f"{title} does not exist; check its name and the region") from None
        if code in _DENIED:
            raise CarawayError(f"{title} cannot be read: access is denied ({code})") from None
        raise CarawayError(f"{title} cannot be read: AWS answered {code}") from None
    except BotoCoreError as exc:
        raise CarawayError(
            f"{title} cannot be read: {type(exc).__name__}; check region, login and network"
        ) from None
    if not isinstance(text, str):
        raise CarawayError(f"{title} holds bytes; only texts are read")
    return ReadSecrets(_values(text))


def _values(text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return {"value": text}
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in found.items()
    }
