"""Every kind of error has one HTTP status on all routes."""

import pytest
from starlette.responses import Response

from caraway_core import errors as raised
from caraway_core.errors.outcomes import FailureKind
from caraway_serving import errors


def test_every_kind_has_a_status() -> None:
    assert set(errors.STATUS) == set(FailureKind)


@pytest.mark.parametrize("answer", [errors.as_text, errors.as_error, errors.as_message])
@pytest.mark.parametrize(
    ("error", "status", "retry_after"),
    [
        (raised.StateAwayError("the state store is away", 4), 503, "4"),
        (raised.OverloadedError("full", 5), 429, "5"),
        (raised.InvalidQueryError("wrong"), 400, None),
        (raised.ExecutionError("broken"), 500, None),
        (errors.RefusedRequestError(415, "no", {"accept-encoding": "gzip"}), 415, None),
    ],
)
def test_status_and_retry_are_the_same_in_every_family(
    answer: errors.Answer, error: errors.Failure, status: int, retry_after: str | None
) -> None:
    response: Response = answer(error)
    assert response.status_code == status
    assert response.headers.get("retry-after") == retry_after
    assert errors.words(error).encode() in response.body
