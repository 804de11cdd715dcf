"""Errors of messages in the shape of Anthropic's wire."""

import json

import pytest

from caraway_core.errors import CarawayError, ModelError
from caraway_gateway.api.messages import errors
from caraway_serving.errors import RefusedRequestError


@pytest.mark.parametrize(
    ("status", "type_"),
    [
        (400, "invalid_request_error"), (401, "authentication_error"), (402, "billing_error"),
        (404, "not_found_error"), (413, "request_too_large"), (418, "invalid_request_error"),
        (429, "rate_limit_error"), (500, "api_error"), (503, "overloaded_error"),
        (504, "timeout_error"), (599, "api_error"),
    ],
)  # fmt: skip
def test_types_by_status(status: int, type_: str) -> None:
    found = errors.document("no", status)
    assert found == {"type": "error", "error": {"type": type_, "message": "no"}}


@pytest.mark.parametrize(
    ("of_chat", "type_"),
    [
        ("insufficient_quota", "billing_error"),
        ("server_error", "api_error"),
        ("rate_limit_error", "rate_limit_error"),
    ],
)
def test_errors_in_a_stream(of_chat: str, type_: str) -> None:
    found = errors.in_stream({"type": of_chat, "message": "no", "code": "x"})
    assert found == {"type": "error", "error": {"type": type_, "message": "no"}}


def test_envelopes() -> None:
    refused = errors.envelope(RefusedRequestError(429, "no", {"retry-after": "3"}))
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "3")
    assert "x-should-retry" not in refused.headers
    away = errors.envelope(ModelError("no", "unavailable"))
    assert json.loads(bytes(away.body))["error"]["type"] == "overloaded_error"
    failed = errors.envelope(CarawayError("no"))
    assert (failed.status_code, failed.headers["x-should-retry"]) == (500, "false")
