"""Clients of DynamoDB, and its errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from caraway_core.errors import DatasetError, DatasetErrorType
from caraway_plugins.sources.params import Params

_ATTEMPTS = 6
_CONNECTIONS = 32
_MOST_SHOWN = 300
_TYPES: dict[str, DatasetErrorType] = {
    "ResourceNotFoundException": "not_found",
    "TableNotFoundException": "not_found",
    "AccessDeniedException": "auth",
    "ExpiredTokenException": "auth",
    "IncompleteSignature": "auth",
    "IncompleteSignatureException": "auth",
    "InvalidSignatureException": "auth",
    "MissingAuthenticationToken": "auth",
    "MissingAuthenticationTokenException": "auth",
    "UnrecognizedClientException": "auth",
    "ValidationException": "invalid",
}
_REMEDIES: dict[DatasetErrorType, str] = {
    "not_found": "check the name of the table and dynamodb_aws_region",
    "auth": "check dynamodb_aws_access_key_id, dynamodb_aws_secret_access_key and the rights",
    "invalid": "check the name of the table",
    "unavailable": "it is tried again",
}


@dataclass(frozen=True, slots=True)
class DynamoLogin:
    """Where DynamoDB is, and the keys of a user; without keys those of the machine are taken."""

    region: str | None
    endpoint: str | None
    timeout_s: float
    key: str | None = field(default=None, repr=False)
    secret: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)


def login_of(known: Params) -> DynamoLogin:
    """Return the login that params describe.

    Raises:
        DatasetError: a param is missing.
    """
    key = known.text("dynamodb_aws_access_key_id")
    secret = known.text("dynamodb_aws_secret_access_key")
    auth = known.text("dynamodb_aws_auth") or ("key" if key or secret else "iam_role")
    if auth not in ("key", "iam_role"):
        raise DatasetError(
            "invalid", f"params.dynamodb_aws_auth is '{auth}'; set it to key or iam_role"
        )
    if auth == "iam_role":
        key = secret = None  # Those of the environment, of a web identity or of the instance.
    elif key is None or secret is None:
        raise DatasetError(
            "invalid",
            "params lacks dynamodb_aws_access_key_id or dynamodb_aws_secret_access_key; set both, "
            "or dynamodb_aws_auth to iam_role for the login of the machine",
        )
    return DynamoLogin(
        known.text("dynamodb_aws_region"),
        known.text("dynamodb_endpoint"),
        known.seconds("client_timeout", 30.0),
        key,
        secret,
        known.text("dynamodb_aws_session_token") if key else None,
    )


@lru_cache(maxsize=64)
def client_of(login: DynamoLogin, service: str = "dynamodb") -> object:
    """Return the client of a login, which all threads may use.

    Raises:
        DatasetError: the login has no region, or an address that is none.
    """
    # boto3 takes a fifth of a second to import, and only these datasets need it.
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    config = Config(
        connect_timeout=min(login.timeout_s, 10.0),
        read_timeout=login.timeout_s,
        retries={"total_max_attempts": _ATTEMPTS, "mode": "standard"},
        max_pool_connections=_CONNECTIONS,
    )
    session: Any = boto3.session.Session()  # The stubs list the names of services.
    try:
        return session.client(
            service,
            region_name=login.region,
            endpoint_url=login.endpoint,
            aws_access_key_id=login.key,
            aws_secret_access_key=login.secret,
            aws_session_token=login.token,
            config=config,
        )
    except (BotoCoreError, ValueError) as exc:
        raise DatasetError(
            "invalid",
            "DynamoDB cannot be addressed; set params.dynamodb_aws_region, and check "
            "dynamodb_endpoint",
        ) from exc


def call(client: object, operation: str, title: str, **request: object) -> Any:
    """Send a request and return its answer.

    Raises:
        DatasetError: DynamoDB refuses it, or cannot be reached.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return getattr(client, operation)(**request)
    except ClientError as exc:
        raise DatasetError(*_refused(title, exc)) from exc
    except BotoCoreError as exc:
        kind: DatasetErrorType = "auth" if "Credentials" in type(exc).__name__ else "unavailable"
        if type(exc).__name__ == "ParamValidationError":
            kind = "invalid"
        reason = f"{title} cannot be read ({type(exc).__name__}); {_REMEDIES[kind]}"
        raise DatasetError(kind, reason) from exc


def _refused(title: str, exc: Any) -> tuple[DatasetErrorType, str]:
    error = exc.response.get("Error", {})
    code = str(error.get("Code", ""))
    kind = _TYPES.get(code, "unavailable")
    if kind == "not_found":
        return kind, f"{title} does not exist; {_REMEDIES[kind]}"
    # A message about the login may repeat parts of it.
    shown = f": {str(error.get('Message', ''))[:_MOST_SHOWN]}" if kind == "invalid" else ""
    return kind, f"{title} cannot be read: DynamoDB answers {code}{shown}; {_REMEDIES[kind]}"
