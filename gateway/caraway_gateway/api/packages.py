"""The route that makes packages: a manifest of a git repository with all it refers to, as a zip."""

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from caraway_core.errors import CarawayError, InvalidRequestError, NotInstalledError
from caraway_core.loading import registry
from caraway_core.packages import sources
from caraway_core.packages.sources import PackageSource
from caraway_gateway.api import app_state
from caraway_serving import bodies, errors, parsing, shapes, streaming
from caraway_serving.errors import RefusedRequestError

router = APIRouter(tags=["Packages"])

_ZIP = "application/zip"
_FIELDS = ("from", "params")
_PARAMS = ("git_token", "github_token")
_MOST_BODY = 64 * 1024
_BODY: dict[str, object] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["from"],
                    "properties": {
                        "from": {"type": "string", "description": f"`{sources.FORM}`"},
                        "params": {
                            "type": ["object", "null"],
                            "properties": {
                                "git_token": {
                                    "type": ["string", "null"],
                                    "description": "An access token of a private repository.",
                                }
                            },
                        },
                    },
                }
            }
        },
    }
}
_STATUSES = {
    400: "`from` or `params` are invalid, or the repository has no such package.",
    408: "The body arrives too slowly.",
    413: "The body is too large.",
    415: "The body has an unsupported encoding.",
    500: "The package could not be made.",
    501: "The command git is not installed here.",
    503: "The host of the repository is away, or too many packages are being made.",
    504: "The repository could not be read in time.",
}


@router.post(
    "/v1/packages/generate",
    openapi_extra=_BODY,
    responses={
        200: {"description": "The package.", "content": {_ZIP: {}}},
        **{
            status: {"description": meaning, "content": shapes.ERROR}
            for status, meaning in _STATUSES.items()
        },
    },
)
async def generate(request: Request) -> Response:
    """Make a zip file of a manifest in a git repository, its `ref`s and its dependencies."""
    services = app_state.services(request)
    git_url = services.manifest.current.runtime.packages.git_url
    try:
        body = await bodies.read(request, min(_MOST_BODY, services.max_body_bytes))
        source, token = await parsing.parsed(request, body, _parsed)
        content = await streaming.unless_gone(
            request, services.packages.zipped(source, git_url, token)
        )
    except NotInstalledError as exc:
        return errors.as_error(RefusedRequestError(501, exc.message))
    except (CarawayError, RefusedRequestError) as exc:
        return errors.as_error(exc)
    except ClientDisconnect:
        return errors.CLIENT_GONE
    disposition = f'attachment; filename="{source.repository}.zip"'
    return Response(content, media_type=_ZIP, headers={"content-disposition": disposition})


def _parsed(body: bytes) -> tuple[PackageSource, str | None]:
    document = parsing.json(body)
    if not isinstance(document, dict):
        raise InvalidRequestError("the request body must be a JSON object")
    _refuse_unknown("field", document, _FIELDS)
    text, params = document.get("from"), document.get("params")
    if not isinstance(text, str):
        raise InvalidRequestError(f"'from' must be a string of the form {sources.FORM}")
    if params is None:
        params = {}
    if not isinstance(params, dict):
        raise InvalidRequestError("'params' must be an object")
    _refuse_unknown("param", params, _PARAMS)
    tokens = [params[name] for name in _PARAMS if params.get(name) is not None]
    if len(tokens) > 1 or not all(isinstance(each, str) for each in tokens):
        raise InvalidRequestError("'params.git_token' must be one string")
    return sources.parse(text), sources.checked_token(tokens[0]) if tokens else None


def _refuse_unknown(kind: str, given: dict[str, object], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise InvalidRequestError(registry.unknown(kind, name[:100], known))
