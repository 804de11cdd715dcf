"""Errors of the table catalog, in the shape of the Iceberg REST protocol."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from caraway_gateway.iceberg.names import CATALOG, NoNamespaceError, NoTableError, NoViewError
from caraway_gateway.iceberg.plan_pages import NoPlanError, NoPlanTaskError
from caraway_gateway.iceberg.service import NotIcebergError
from caraway_serving import errors
from caraway_serving.errors import Failure, RefusedRequestError

UNSUPPORTED = 406
_TYPES: Mapping[int, str] = {
    400: "BadRequestException",
    401: "NotAuthorizedException",
    403: "ForbiddenException",
    404: "NotFoundException",
    405: "UnsupportedOperationException",
    UNSUPPORTED: "UnsupportedOperationException",
    429: "TooManyRequestsException",
    503: "ServiceUnavailableException",
    504: "ServiceUnavailableException",
}
_OF_CLASSES: Mapping[type[Exception], str] = {
    NoNamespaceError: "NoSuchNamespaceException",
    NoTableError: "NoSuchTableException",
    NoViewError: "NoSuchViewException",
    NoPlanError: "NoSuchPlanIdException",
    NoPlanTaskError: "NoSuchPlanTaskException",
}
DOCUMENTED: dict[str, object] = {
    "application/json": {
        "schema": {
            "type": "object",
            "required": ["error"],
            "properties": {
                "error": {
                    "type": "object",
                    "required": ["message", "type", "code"],
                    "properties": {
                        "message": {"type": "string"},
                        "type": {"type": "string"},
                        "code": {"type": "integer"},
                    },
                }
            },
        }
    }
}


def envelope(exc: Failure) -> Response:
    """Return the response for a failure."""
    status = UNSUPPORTED if isinstance(exc, NotIcebergError) else errors.status(exc)
    type_ = _OF_CLASSES.get(type(exc)) or kind(status)
    body = {"error": {"message": errors.words(exc), "type": type_, "code": status}}
    return JSONResponse(body, status, errors.headers(exc))


def kind(status: int) -> str:
    """Return the type of an error with a status."""
    return _TYPES.get(status, "InternalServerError")


def unauthorized() -> Response:
    """Return the response for a request without a known key."""
    message = "the API key is missing or unknown; send it as 'Authorization: Bearer KEY'"
    return envelope(RefusedRequestError(401, message, {"www-authenticate": "Bearer"}))


def refused(request: Request) -> Response:
    """Return the response for a request of the protocol that is not served."""
    what = f"{request.method} {request.url.path}"
    if request.method in ("GET", "HEAD"):
        message = f"no route {what}; GET /v1/config lists the routes"
        return envelope(RefusedRequestError(404, message))
    message = f"{what}: the catalog is read-only; change the manifest, or write rows by SQL"
    return envelope(RefusedRequestError(UNSUPPORTED, message))


def no_catalog(prefix: str) -> RefusedRequestError:
    """Return the error for a catalog that this server does not have."""
    return RefusedRequestError(
        404, f"there is no catalog '{prefix}'; its prefix is '{CATALOG}', as GET /v1/config says"
    )
