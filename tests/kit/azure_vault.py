"""Answers of Azure Key Vault, and of the three places that give tokens for it."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

CLIENT = {"client_id": "app", "client_secret": "hunter2-secret"}
ASSERTED = {
    "client_id": "app",
    "client_assertion": "pod-jwt",
    "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
}
RESOURCE = "https://vault.azure.net"
VERSION = "7.4"
HEADER = "hunter2-header"


def is_of_azure(path: str) -> bool:
    """Return whether a request is one for Azure."""
    return path.startswith(("/secrets/", "/metadata/identity/", "/msi/", "/tenant/"))


def get(
    path: str, headers: Mapping[str, str], secrets: Mapping[str, Any], token: str, life_s: int
) -> tuple[int, Any]:
    """Return the answer to a GET; `token` is the one that is valid now."""
    parts = urlsplit(path)
    asked = dict(parse_qsl(parts.query))
    given = {"access_token": token, "expires_in": str(life_s), "token_type": "Bearer"}
    if parts.path == "/metadata/identity/oauth2/token":
        is_right = headers.get("metadata") == "true" and asked["api-version"] == "2018-02-01"
        is_right &= asked["resource"] == RESOURCE and asked.get("client_id", "app") == "app"
        return (200, given) if is_right else (400, {"error": "invalid_request of hunter2"})
    if parts.path == "/msi/token":
        is_right = headers.get("x-identity-header") == HEADER and asked["resource"] == RESOURCE
        return (200, given) if is_right else (400, {"error": "invalid_request of hunter2"})
    if headers.get("authorization") != f"Bearer {token}":
        return 401, {"error": {"code": "Unauthorized", "message": "hunter2"}}
    name = parts.path.removeprefix("/secrets/")
    if name == "forbidden":
        return 403, {"error": {"code": "Forbidden", "message": "hunter2"}}
    found = {each.replace("_", "-").lower(): value for each, value in secrets.items()}
    if asked.get("api-version") != VERSION or name.lower() not in found:
        return 404, {"error": {"code": "SecretNotFound", "message": "hunter2"}}
    value, expires = found[name.lower()], secrets.get("expires")
    attributes = {"enabled": True, **({"exp": expires} if expires else {})}
    return 200, {"value": value, "id": f"https://v.vault.azure.net{parts.path}/1",
                 "attributes": attributes}  # fmt: skip


def post(path: str, form: Mapping[str, str], token: str, life_s: int) -> tuple[int, Any]:
    """Return the answer to a request for a token of an application."""
    grant = {"grant_type": "client_credentials", "scope": f"{RESOURCE}/.default"}
    if path != "/tenant/oauth2/v2.0/token" or form not in (
        {**grant, **CLIENT},
        {**grant, **ASSERTED},
    ):
        return 401, {"error": "invalid_client", "error_description": "hunter2"}
    return 200, {"token_type": "Bearer", "expires_in": life_s, "access_token": token}
