"""Errors of chats: statuses, codes and types that clients act on."""

import json

import pytest

from caraway_ai.chat.checking import RequestFieldError
from caraway_core.errors import (
    CarawayError,
    ModelError,
    ModelErrorType,
    NotFoundError,
    UnavailableError,
)
from caraway_gateway.api.chat import errors
from caraway_serving.errors import Failure, RefusedRequestError


def of_model(type_: ModelErrorType) -> ModelError:
    return ModelError("model 'm': no", type_)


@pytest.mark.parametrize(
    ("error", "status", "type_", "code"),
    [
        (of_model("auth"), 401, "authentication_error", "invalid_api_key"),
        (of_model("quota"), 402, "insufficient_quota", "insufficient_quota"),
        (of_model("rate_limit"), 429, "rate_limit_error", "rate_limit_exceeded"),
        (of_model("timeout"), 504, "server_error", "model.timeout"),
        (of_model("unavailable"), 503, "server_error", "model.unavailable"),
        (of_model("invalid"), 400, "invalid_request_error", "model.invalid"),
        (of_model("context_length"), 400, "invalid_request_error", "context_length_exceeded"),
        (of_model("failed"), 500, "server_error", "model.failed"),
        (UnavailableError("no"), 503, "server_error", None),
        (CarawayError("no"), 500, "server_error", None),
        (RefusedRequestError(413, "no"), 413, "invalid_request_error", None),
        (RefusedRequestError(403, "no"), 403, "permission_error", None),
    ],
)
def test_failures(error: Failure, status: int, type_: str, code: str | None) -> None:
    assert errors.status(error) == status
    document = errors.document(error)
    assert (document["type"], document["code"], document["param"]) == (type_, code, None)


@pytest.mark.parametrize(("param", "shown"), [("messages[0]", "messages[0]"), ("", None)])
def test_fields_that_are_wrong_are_named(param: str, shown: str | None) -> None:
    error = RequestFieldError(param, "is wrong")
    assert errors.status(error) == 400
    assert errors.document(error)["param"] == shown


def test_responses() -> None:
    refused = errors.response(RefusedRequestError(429, "no", {"retry-after": "3"}))
    assert refused.headers["retry-after"] == "3"
    assert json.loads(bytes(refused.body))["error"]["message"] == "no"
    missing = errors.response(NotFoundError("no"))
    assert (missing.status_code, bytes(missing.body)) == (404, b"")


def test_failures_that_would_repeat_say_so() -> None:
    response = errors.response(of_model("failed"))
    assert response.status_code == 500
    assert response.headers["x-should-retry"] == "false"
    assert isinstance(json.loads(bytes(response.body))["error"], str)
