"""Refusals: their status, their code, and what they say of fields."""

import pytest

from caraway_management.domain import refusals
from caraway_management.domain.refusals import RefusedError


@pytest.mark.parametrize(
    ("refusal", "status", "code", "message"),
    [
        (refusals.invalid("no"), 400, None, "no"),
        (refusals.invalid_field("name", "is long", "too_long"), 400, "too_long", "name: is long"),
        (refusals.unauthorized("no"), 401, None, "no"),
        (refusals.insufficient_scope("apps:read"), 403, "insufficient_scope",
         "Insufficient scope. Required: apps:read"),
        (refusals.forbidden("no"), 403, "forbidden", "no"),
        (refusals.over_limit("no"), 403, "plan_limit", "no"),
        (refusals.not_found("project", 0), 404, None, "project '0' not found"),
        (refusals.not_found("project"), 404, None, "project not found"),
        (refusals.conflict("no", "taken"), 409, "taken", "no"),
    ],
)  # fmt: skip
def test_refusals(refusal: RefusedError, status: int, code: str | None, message: str) -> None:
    assert (refusal.status, refusal.code, refusal.message) == (status, code, message)


def test_parts_are_not_shared() -> None:
    fields, headers = {"a": ["wrong"]}, {"retry-after": "1"}
    made = RefusedError(429, "later", fields=fields, headers=headers, extra={"limit": 5})
    fields.clear()
    headers.clear()
    assert made.fields == {"a": ["wrong"]}
    assert made.headers == {"retry-after": "1"}
    assert made.extra == {"limit": 5}
    assert refusals.invalid_field("name", "is long").fields == {"name": ["is long"]}
