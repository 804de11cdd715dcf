import json
from typing import Any

import pytest

from caraway_gateway.api.queries import submissions
from caraway_serving.errors import RefusedRequestError
from tests.gateway.api.queries.serving import Serving


@pytest.mark.parametrize("content_type", [None, "", "application/json; charset=utf-8", "a/b+json"])
def test_json_is_read_whether_or_not_it_says_so(content_type: str | None) -> None:
    assert submissions.parse(b'{"sql": "SELECT 1"}', content_type).sql == "SELECT 1"


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [(None, {}), ([1, "a"], {"1": 1, "2": "a"}), ({"$n": 1, "m": None}, {"n": 1, "m": None})],
)
def test_parameters_are_kept_by_name(parameters: Any, expected: dict[str, Any]) -> None:
    body = json.dumps({"sql": "SELECT", "parameters": parameters}).encode()
    assert submissions.parse(body, None).parameters == expected


def test_limits_beyond_every_date_and_size_are_cut() -> None:
    body = b'{"sql": "SELECT", "timeout_seconds": 1' + b"0" * 400 + b', "maximum_size": 1e300}'
    wanted = submissions.parse(body, None)
    assert (wanted.timeout_s, wanted.maximum_size) == (1e9, 2**63 - 1)


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        (b'{"sql": "SELECT 1"', 400, "not JSON"),
        (b"", 400, "not JSON"),
        (b"\xff", 400, "is not UTF-8"),
        (b'{"sql": "\\ud800"}', 400, "half of a Unicode character"),
        (b"[" * 100_000, 400, "not JSON"),
        (b'{"sql": "SELECT 1", "parameters": {"a": NaN}}', 400, "NaN"),
        (b'{"sql": " "}', 400, "empty"),
        (b"[1]", 422, "JSON object"),
        (b"{}", 422, '"sql"'),
        (b'{"sql": 1}', 422, '"sql"'),
        (b'{"sql": "SELECT 1", "parameters": 3}', 422, '"parameters"'),
        (b'{"sql": "SELECT 1", "parameters": "x"}', 422, '"parameters"'),
        (b'{"sql": "SELECT $1", "parameters": [{}]}', 400, "parameter $1: an object"),
        (b'{"sql": "SELECT :a", "parameters": {"a": {"b": 1}}}', 400, "parameter $a: an object"),
        (b'{"sql": "SELECT 1", "timeout_seconds": -1}', 422, '"timeout_seconds"'),
        (b'{"sql": "SELECT 1", "timeout_seconds": 0}', 422, "greater than 0"),
        (b'{"sql": "SELECT 1", "timeout_seconds": "5"}', 422, '"timeout_seconds"'),
        (b'{"sql": "SELECT 1", "timeout_seconds": true}', 422, '"timeout_seconds"'),
        (b'{"sql": "SELECT 1", "timeout_seconds": 1e999}', 400, "out of range"),
        (b'{"sql": "SELECT 1", "maximum_size": -1}', 422, '"maximum_size"'),
        (b'{"sql": "SELECT 1", "maximum_size": 1.5}', 422, '"maximum_size"'),
        (b'{"sql": "SELECT 1", "maximum_size": 1e999}', 400, "out of range"),
    ],
)
async def test_a_wrong_body_is_a_json_error(
    server: Serving, content: bytes, status: int, says: str
) -> None:
    response = await server.api.post("/v1/queries", content=content)
    assert response.status_code == status, response.text
    assert says in response.json()["error"]


async def test_another_content_type_is_415(server: Serving) -> None:
    response = await server.api.post(
        "/v1/queries", content=b"SELECT 1", headers={"content-type": "text/plain"}
    )
    assert response.status_code == 415
    assert "application/json" in response.json()["error"]


def test_space_around_an_idempotency_key_is_dropped() -> None:
    assert submissions.idempotency_key(" a-b\t ") == "a-b"


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "é", "a\x7f"])
def test_an_idempotency_key_that_is_no_key(key: str) -> None:
    with pytest.raises(RefusedRequestError, match="1 to 255 visible ASCII") as raised:
        submissions.idempotency_key(key)
    assert raised.value.status == 400


@pytest.mark.parametrize("key", ["a", "!" * 255, '"8e03978e-40d5-43e8-bc93-6894a57f9324"'])
def test_an_idempotency_key_is_unchanged(key: str) -> None:
    assert submissions.idempotency_key(key) == key


async def test_a_wrong_idempotency_key_is_400(server: Serving) -> None:
    response = await server.post(json={"sql": "SELECT 1"}, **{"idempotency-key": "a b"})
    assert response.status_code == 400
