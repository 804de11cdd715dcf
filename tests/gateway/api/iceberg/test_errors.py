"""Errors in the shape of the Iceberg REST protocol."""

import json
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from caraway_core.errors import CarawayError, InvalidRequestError, UnavailableError
from caraway_gateway.api.iceberg import errors
from caraway_serving.errors import Failure, RefusedRequestError


def parsed(response: Response) -> tuple[int, Any]:
    found = json.loads(bytes(response.body))
    assert list(found) == ["error"]
    assert found["error"]["code"] == response.status_code
    return response.status_code, found["error"]


@pytest.mark.parametrize(
    ("error", "status", "type_"),
    [
        (InvalidRequestError("no"), 400, "BadRequestException"),
        (UnavailableError("no"), 503, "ServiceUnavailableException"),
        (CarawayError("no"), 500, "InternalServerError"),
        (RefusedRequestError(404, "no"), 404, "NotFoundException"),
        (RefusedRequestError(418, "no"), 418, "InternalServerError"),
        (RefusedRequestError(429, "no"), 429, "TooManyRequestsException"),
    ],
)
def test_envelopes(error: Failure, status: int, type_: str) -> None:
    found, document = parsed(errors.envelope(error))
    assert (found, document["type"]) == (status, type_)
    assert document["message"]


def test_headers_are_sent() -> None:
    response = errors.envelope(RefusedRequestError(429, "no", {"retry-after": "3"}))
    assert response.headers["retry-after"] == "3"
    assert errors.unauthorized().headers["www-authenticate"] == "Bearer"
    assert parsed(errors.unauthorized())[0] == 401


@pytest.mark.parametrize(
    ("method", "status", "words"),
    [
        ("GET", 404, "GET /v1/config lists the routes"),
        ("HEAD", 404, "no route HEAD /v1/x"),
        ("POST", 406, "the catalog is read-only"),
        ("DELETE", 406, "the catalog is read-only"),
    ],
)
def test_requests_that_are_not_served(method: str, status: int, words: str) -> None:
    scope = {"type": "http", "method": method, "path": "/v1/x", "query_string": b"", "headers": [],
             "scheme": "http", "server": ("h", 80)}  # fmt: skip
    found, document = parsed(errors.refused(Request(scope)))
    assert found == status
    assert words in document["message"]


def test_other_catalogs_are_not_there() -> None:
    assert parsed(errors.envelope(errors.no_catalog("x")))[0] == 404
