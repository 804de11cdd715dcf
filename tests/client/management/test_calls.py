import json
from datetime import UTC, datetime

import pytest

from caraway.errors import ApiError, BrokenResponseError, UnreachableError
from caraway.management.calls import UNSET, Call, members, part
from caraway_core.errors import CarawayError

BROKEN = BrokenResponseError("it broke")


def test_a_request_has_the_token_and_the_organization() -> None:
    request = Call("GET", "/v1/projects", names_org=True).request("secret", "acme")

    assert request.headers("") == {
        "Accept": "application/json",
        "Authorization": "Bearer secret",
        "X-Org-Name": "acme",
    }
    assert "secret" not in repr(request)


def test_an_organization_is_sent_to_operations_that_take_one_only() -> None:
    assert "X-Org-Name" not in Call("GET", "/v1/orgs").request("secret", "acme").headers("")


def test_arguments_of_a_query_are_left_out_or_sent_as_text() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    query = {"a": None, "b": UNSET, "c": True, "d": 3, "e": at}

    request = Call("GET", "/v1/projects", query=query).request("", "")

    assert request.query == {"c": "true", "d": "3", "e": "2026-01-02T00:00:00+00:00"}


def test_a_body_leaves_out_what_is_not_given() -> None:
    body = members({"name": "x"}, optional={"a": None, "b": 1}, nullable={"c": None, "d": UNSET})

    assert body == {"name": "x", "b": 1, "c": None}


def test_a_body_is_json() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    request = Call("POST", "/v1/tokens", body={"expires_at": at}).request("", "")

    assert json.loads(request.body) == {"expires_at": "2026-01-02T00:00:00+00:00"}
    assert request.content_type == "application/json"


def test_each_post_has_a_key_of_its_own() -> None:
    call = Call("POST", "/v1/projects")
    keys = {call.request("", "").extra["Idempotency-Key"] for _ in range(2)}

    assert len(keys) == 2


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_only_a_post_has_a_key(method: str) -> None:
    assert "Idempotency-Key" not in Call(method, "/v1/projects/1").request("", "").extra


@pytest.mark.parametrize("call", [Call("GET", "/a"), Call("POST", "/a")])
def test_a_call_that_does_no_harm_twice_is_sent_again(call: Call) -> None:
    under_way = ApiError(409, "later", code="idempotent_request_under_way")
    for error in (BROKEN, ApiError(503, "away"), under_way, UnreachableError("x", "y")):
        assert call.policy(1).delay_s(error, 0) is not None
    assert call.policy(1).delay_s(ApiError(409, "taken"), 0) is None


@pytest.mark.parametrize(
    "call", [Call("PUT", "/a"), Call("DELETE", "/a"), Call("POST", "/a", has_key=False)]
)
def test_a_call_that_may_have_been_carried_out_is_not_sent_again(call: Call) -> None:
    policy = call.policy(1)

    assert [policy.delay_s(error, 0) for error in (BROKEN, ApiError(503, "away"))] == [None, None]
    assert policy.delay_s(ApiError(429, "busy"), 0) is not None
    assert policy.delay_s(UnreachableError("x", "y"), 0) is not None


def test_a_part_of_a_path_is_one_part() -> None:
    assert part("a/b ?#%") == "a%2Fb%20%3F%23%25"
    assert part(7) == "7"


@pytest.mark.parametrize("given", ["", ".", ".."])
def test_a_part_of_a_path_that_would_change_the_path_is_refused(given: str) -> None:
    with pytest.raises(CarawayError, match="no name or id"):
        part(given)
