import json
from collections.abc import Callable
from typing import Any

import pytest

from caraway.client import Client
from caraway.errors import ApiError, BrokenResponseError
from caraway.routes import refreshes
from caraway.routes.refreshes import AccelerationStatus, RefreshError
from tests.client.routes.refreshing import REFRESH, STANDING, busy, stands, told
from tests.client.runtime import Answer, FakeRuntime, Pauses, pausing

SETTINGS = "PATCH /v1/datasets/orders/acceleration"


Watch = Callable[..., list[AccelerationStatus]]


@pytest.fixture
def watch(runtime: FakeRuntime) -> Watch:
    """Watch a refresh; the first document is from before the request, the others from after it."""

    def run(before: dict[str, Any], *after: dict[str, Any]) -> list[AccelerationStatus]:
        runtime.answers(STANDING, *told(*after))
        with pausing(Pauses(), http_url=runtime.endpoint) as client:
            return list(client.watch_refresh("orders", before))

    return run


def asks(runtime: FakeRuntime, question: Callable[[Client], object]) -> tuple[Any, list[float]]:
    pauses = Pauses()
    with pausing(pauses, http_url=runtime.endpoint) as client:
        return question(client), pauses.seconds


def test_refresh_sends_the_overrides_and_returns_the_message(runtime: FakeRuntime) -> None:
    runtime.answers(REFRESH, Answer(201, b'{"message":"has begun"}'))

    asks(runtime, lambda c: c.refresh_acceleration("orders"))
    said, _ = asks(
        runtime,
        lambda c: c.refresh_acceleration(
            "orders",
            refresh_sql="SELECT id FROM orders",
            refresh_mode="append",
            refresh_jitter_max="1s",
        ),
    )

    assert said == "has begun"
    assert [json.loads(asked.body) for asked in runtime.asked] == [
        {},
        {
            "refresh_sql": "SELECT id FROM orders",
            "refresh_mode": "append",
            "refresh_jitter_max": "1s",
        },
    ]
    assert runtime.asked[0].headers["content-type"] == "application/json"


def test_refresh_sql_is_set_and_reset(runtime: FakeRuntime) -> None:
    runtime.answers(SETTINGS, Answer(200))

    asks(runtime, lambda c: c.set_refresh_sql("orders", "SELECT id FROM orders"))
    asks(runtime, lambda c: c.set_refresh_sql("orders", None))

    assert [json.loads(asked.body) for asked in runtime.asked] == [
        {"refresh_sql": "SELECT id FROM orders"},
        {"refresh_sql": None},
    ]


def test_names_are_quoted_in_the_path(runtime: FakeRuntime) -> None:
    with pytest.raises(ApiError):
        asks(runtime, lambda c: c.acceleration("../a b?"))

    assert runtime.asked[0].path == "/v1/datasets/..%2Fa%20b%3F/acceleration"


@pytest.mark.parametrize(
    "passing", [Answer(503, headers={"retry-after": "2"}), Answer(201, b"{", breaks_off=True)]
)
def test_a_temporary_error_is_retried(runtime: FakeRuntime, passing: Answer) -> None:
    runtime.answers(REFRESH, passing, Answer(201, b'{"message":"has begun"}'))

    said, pauses = asks(runtime, lambda c: c.refresh_acceleration("orders"))

    assert said == "has begun"
    assert len(pauses) == 1


def test_a_rejected_request_is_not_retried(runtime: FakeRuntime) -> None:
    runtime.answers(REFRESH, Answer(400, b'{"message":"dataset \'orders\' is not accelerated"}'))

    with pytest.raises(ApiError, match="not accelerated"):
        asks(runtime, lambda c: c.refresh_acceleration("orders"))
    assert len(runtime.asked) == 1


def test_watching_ends_with_the_next_version(watch: Watch) -> None:
    looks = watch(stands(1), busy(1), busy(1, 500), stands(2))

    assert [look.loaded_rows for look in looks] == [0, 500, 0]
    assert (looks[-1].version, looks[-1].rows, looks[-1].bytes) == (2, 20, 99)


def test_watching_includes_the_first_version(watch: Watch) -> None:
    nothing: dict[str, Any] = {"dataset": "orders", "status": "initializing"}

    assert watch(nothing, nothing, busy(0), stands(1))[-1].version == 1


def test_watching_includes_a_queued_refresh(watch: Watch) -> None:
    looks = watch(busy(1), busy(1, is_asked_for_again=True), busy(2), stands(3))

    assert looks[0].is_asked_again
    assert looks[-1].version == 3


def test_the_version_of_an_earlier_refresh_does_not_end_watching(
    watch: Watch,
) -> None:
    assert watch(busy(1), stands(2), busy(2), stands(3))[-1].version == 3


def test_a_refresh_that_finishes_between_polls_ends_watching(watch: Watch) -> None:
    assert len(watch(stands(1), stands(2))) == 2


@pytest.mark.parametrize(
    "looks",
    [
        [busy(1), stands(1, error="broken")],
        [stands(1, error="broken")],
        [busy(1, error="old"), stands(1, error="old"), stands(2)],
        # Another scheduler created that version in the meantime.
        [busy(1), stands(2, error="broken")],
    ],
)
def test_a_failed_refresh_raises(watch: Watch, looks: list[dict[str, Any]]) -> None:
    with pytest.raises(RefreshError, match=r"broken|old"):
        watch(stands(1, error="old"), *looks)


def test_an_earlier_failure_does_not_end_watching(watch: Watch) -> None:
    old = stands(1, error="old")

    assert watch(old, old, old, busy(1, error="old"), stands(2))[-1].version == 2


@pytest.mark.parametrize(("error", "says"), [("", "request it again"), ("old", "old")])
def test_a_refresh_that_never_starts_raises(watch: Watch, error: str, says: str) -> None:
    with pytest.raises(RefreshError, match=says):
        watch(stands(1, error=error), stands(1, error=error))


def test_pauses_grow_to_the_maximum(runtime: FakeRuntime) -> None:
    runtime.answers(STANDING, *told(*[busy(1)] * 6, stands(2)))

    _, pauses = asks(runtime, lambda c: list(c.watch_refresh("orders", stands(1), 0.5)))

    assert pauses == [0.1, 0.2, 0.4, 0.5, 0.5, 0.5]


def test_watching_survives_a_restart_of_the_server(runtime: FakeRuntime) -> None:
    runtime.answers(STANDING, *told(busy(1)), Answer(503), Answer(502), *told(busy(1), stands(2)))

    looks, _ = asks(runtime, lambda c: list(c.watch_refresh("orders", stands(1))))

    assert looks[-1].version == 2


@pytest.mark.parametrize("document", [{"version": 3}, {"version": {"number": "x"}}])
def test_an_unexpected_document_is_an_error(document: dict[str, Any]) -> None:
    with pytest.raises(BrokenResponseError, match="status of a dataset"):
        refreshes.parse_status(document)
