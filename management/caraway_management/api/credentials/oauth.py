"""OAuth for clients: tokens (RFC 6749), keys, registration (RFC 7591) and metadata."""

import base64
import binascii
from urllib.parse import parse_qsl, unquote_plus

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from caraway_core.json_texts import strict_json
from caraway_management.api.access import GivenServices
from caraway_management.api.credentials.signing_in import address_of
from caraway_management.credentials import attempts, clients, grants, signing
from caraway_management.credentials.oauth import GrantError, Issuer, narrower, one
from caraway_management.domain import grants as rules
from caraway_management.domain import names
from caraway_management.domain.refusals import RefusedError
from caraway_management.domain.scopes import EVERYTHING, SCOPES
from caraway_management.services import Services

router = APIRouter(tags=["oauth"])
_NO_STORE = {"cache-control": "no-store", "pragma": "no-cache"}
_FORM = "application/x-www-form-urlencoded"
_MOST_PARAMETERS = 50
_REGISTRATIONS = 20
_GRANTS = ["authorization_code", "refresh_token", "client_credentials"]
_SHOWN_SCOPES = [EVERYTHING, *sorted(SCOPES)]
_PARAMETERS = {
    "schema": {
        "type": "object",
        "required": ["grant_type"],
        "properties": {
            "grant_type": {"type": "string", "enum": _GRANTS},
            **{
                name: {"type": "string"}
                for name in (
                    "client_id",
                    "client_secret",
                    "scope",
                    "code",
                    "redirect_uri",
                    "code_verifier",
                    "refresh_token",
                    "resource",
                )
            },
        },
    }
}


@router.post(
    "/api/oauth/token",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": _PARAMETERS, _FORM: _PARAMETERS},
        }
    },
)
async def create_access_token(request: Request, services: GivenServices) -> Response:
    """Give an OAuth client a token, as JSON or form, with Basic or with parameters.

    Errors are those of RFC 6749: `{error, error_description}`.
    """
    try:
        answer = await _answer(request, services)
    except GrantError as exc:
        return _refusal(exc)
    return JSONResponse(answer, headers=_NO_STORE)


@router.get("/.well-known/jwks.json")
async def list_signing_keys(services: GivenServices) -> dict[str, object]:
    """List the public keys that access tokens are signed with."""
    async with services.database.read() as session:
        return await signing.published(session, services.now())


class RegistrationBody(BaseModel):
    """The client metadata of RFC 7591; unknown members are ignored, as it says."""

    model_config = ConfigDict(extra="ignore")

    redirect_uris: list[str] = Field(max_length=100)
    client_name: str = "an unnamed program"


@router.post("/api/oauth/register", status_code=201)
async def register_oauth_client(
    request: Request, body: RegistrationBody, services: GivenServices
) -> Response:
    """Register a program that acts for users, such as an MCP client (RFC 7591).

    It gets no secret, and uses authorization codes with PKCE.
    """
    try:
        uris = rules.check_redirects(body.redirect_uris)
        name = names.check_text(body.client_name, "client_name")
    except RefusedError as exc:
        code = (
            "invalid_redirect_uri" if "redirect_uris" in exc.fields else "invalid_client_metadata"
        )
        return _refusal(GrantError(code, exc.message))
    now = services.now()
    limits = {attempts.key("register", address_of(request)): _REGISTRATIONS}
    async with services.database.change() as session:
        await attempts.count(session, now, limits)
        client = await clients.register(session, now, name, uris)
    shown = {
        "client_id": client.client_id,
        "client_id_issued_at": int(now.timestamp()),
        "client_name": client.name,
        "redirect_uris": client.redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    return JSONResponse(shown, 201, _NO_STORE)


@router.get("/.well-known/oauth-authorization-server")
async def get_authorization_server(services: GivenServices) -> dict[str, object]:
    """Describe the authorization server (RFC 8414)."""
    base = services.credentials.public_url
    return {
        "issuer": services.credentials.public_url,
        "authorization_endpoint": f"{base}/oauth/authorize",
        "token_endpoint": f"{base}/api/oauth/token",
        "registration_endpoint": f"{base}/api/oauth/register",
        "jwks_uri": f"{base}/.well-known/jwks.json",
        "scopes_supported": _SHOWN_SCOPES,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": _GRANTS,
        "token_endpoint_auth_methods_supported": [
            "none",
            "client_secret_basic",
            "client_secret_post",
        ],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }


@router.get("/.well-known/oauth-protected-resource")
async def get_protected_resource(services: GivenServices) -> dict[str, object]:
    """Describe the API as a protected resource (RFC 9728)."""
    return _resource(services, "")


@router.get("/.well-known/oauth-protected-resource/mcp")
async def get_protected_mcp_endpoint(services: GivenServices) -> dict[str, object]:
    """Describe the MCP endpoint as a protected resource (RFC 9728)."""
    return _resource(services, "/mcp")


def _resource(services: Services, path: str) -> dict[str, object]:
    base = services.credentials.public_url
    return {
        "resource": f"{base}{path}",
        "authorization_servers": [services.credentials.public_url],
        "jwks_uri": f"{base}/.well-known/jwks.json",
        "scopes_supported": _SHOWN_SCOPES,
        "bearer_methods_supported": ["header"],
    }


async def _answer(request: Request, services: Services) -> dict[str, object]:
    parameters = _parse(request, await request.body())
    client_id, secret = _client_of(request, parameters)
    grant = one(parameters, "grant_type")
    if grant not in _GRANTS:
        raise GrantError(
            "unsupported_grant_type", f"grant_type must be one of {', '.join(_GRANTS)}"
        )
    issuer = Issuer(services.credentials, services.sealer)
    async with services.database.change() as session:
        now = services.now()
        client = await clients.authenticate(session, now, client_id, secret)
        if (grant == "client_credentials") != (client.secret_hash is not None):
            raise GrantError("unauthorized_client", "this client may not use this grant_type")
        if grant == "authorization_code":
            answer = await grants.redeem_code(session, issuer, now, client, parameters)
        elif grant == "refresh_token":
            answer = await grants.refresh(session, issuer, now, client, parameters)
        else:
            given = narrower(parameters, client.scopes)
            answer = await issuer.access_token(session, now, client, given)
        client.last_used_at = now
    if isinstance(answer, GrantError):
        raise answer
    return answer


def _parse(request: Request, body: bytes) -> dict[str, str]:
    """Return the parameters of a body: strings, each once."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "application/json":
            value = strict_json.parse(body)
            pairs = list(value.items()) if isinstance(value, dict) else None
        elif kind == _FORM:
            pairs = parse_qsl(
                body.decode(), keep_blank_values=True, max_num_fields=_MOST_PARAMETERS,
                errors="strict",
            )  # fmt: skip
        else:
            raise GrantError("invalid_request", f"send {_FORM} or application/json")
    except ValueError as exc:
        raise GrantError("invalid_request", "the body cannot be read") from exc
    if pairs is None or not all(isinstance(value, str) for _, value in pairs):
        raise GrantError("invalid_request", "the body must have parameters that are strings")
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise GrantError("invalid_request", "a parameter is there twice")
    return parameters


def _client_of(request: Request, parameters: dict[str, str]) -> tuple[str, str | None]:
    header = request.headers.get("authorization")
    if header is None:
        return one(parameters, "client_id"), parameters.get("client_secret")
    if "client_secret" in parameters:
        raise GrantError("invalid_request", "send the secret in one place only")
    scheme, _, text = header.partition(" ")
    try:
        decoded = base64.b64decode(text.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        decoded = ""
    if scheme.lower() != "basic" or ":" not in decoded:
        raise GrantError("invalid_client", "the Authorization header must be Basic", 401)
    client_id, _, secret = decoded.partition(":")
    named = unquote_plus(client_id)
    if parameters.get("client_id", named) != named:
        raise GrantError("invalid_request", "client_id is not that of the Authorization header")
    return named, unquote_plus(secret)


def _refusal(exc: GrantError) -> Response:
    headers = dict(_NO_STORE)
    if exc.status == 401:
        headers["www-authenticate"] = 'Basic realm="caraway"'
    body = {"error": exc.code, "error_description": exc.message}
    return JSONResponse(body, exc.status, headers)
