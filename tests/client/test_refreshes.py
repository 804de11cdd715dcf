import json
from collections.abc import Callable
from typing import Any

import pytest

from caraway import refreshes
from caraway.client import Client
from caraway.errors import BrokenAnswerError, RefusedError
from caraway.refreshes import RefreshError, Standing
from tests.client.runtime import Answer, FakeRuntime, Pauses

STANDING = "GET /v1/datasets/orders/acceleration"
REFRESH = "POST /v1/datasets/orders/acceleration/refresh"
SETTINGS = "PATCH /v1/datasets/orders/acceleration"


def stands(version: int, **more: Any) -> dict[str, Any]:
    return {"version": {"number": version, "rows": 10 * version, "bytes": 99}, **more}


def busy(version: int, rows: int = 0, **more: Any) -> dict[str, Any]:
    return stands(version, refresh={"attempt": 1, "rows": rows, "bytes": rows}, **more)


def told(*documents: dict[str, Any]) -> list[Answer]:
    return [Answer(body=json.dumps(document).encode()) for document in documents]


Watch = Callable[..., list[Standing]]


@pytest.fixture
def watch(runtime: FakeRuntime) -> Watch:
    """Watch a refresh of a dataset that stood like the first and stands like the others."""

    def run(before: dict[str, Any], *after: dict[str, Any]) -> list[Standing]:
        runtime.answers(STANDING, *told(*after))
        with Client(runtime.endpoint, sleep=Pauses()) as client:
            return list(client.watch_refresh("orders", before))

    return run


def asks(runtime: FakeRuntime, question: Callable[[Client], object]) -> tuple[Any, list[float]]:
    pauses = Pauses()
    with Client(runtime.endpoint, sleep=pauses) as client:
        return question(client), pauses.seconds


def test_refresh_sends_what_is_given_and_returns_what_is_said(runtime: FakeRuntime) -> None:
    runtime.answers(REFRESH, Answer(201, b'{"message":"has begun"}'))

    asks(runtime, lambda c: c.refresh("orders"))
    said, _ = asks(
        runtime,
        lambda c: c.refresh("orders", "SELECT id FROM orders", "append", refresh_jitter_max="1s"),
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


def test_refresh_sql_is_set_and_taken_back(runtime: FakeRuntime) -> None:
    runtime.answers(SETTINGS, Answer(200))

    asks(runtime, lambda c: c.set_refresh_sql("orders", "SELECT id FROM orders"))
    asks(runtime, lambda c: c.set_refresh_sql("orders", None))

    assert [json.loads(asked.body) for asked in runtime.asked] == [
        {"refresh_sql": "SELECT id FROM orders"},
        {"refresh_sql": None},
    ]


def test_names_are_kept_out_of_the_path(runtime: FakeRuntime) -> None:
    with pytest.raises(RefusedError):
        asks(runtime, lambda c: c.acceleration("../a b?"))

    assert runtime.asked[0].path == "/v1/datasets/..%2Fa%20b%3F/acceleration"


@pytest.mark.parametrize(
    "passing", [Answer(503, headers={"retry-after": "2"}), Answer(201, b"{", breaks_off=True)]
)
def test_what_passes_is_asked_again(runtime: FakeRuntime, passing: Answer) -> None:
    runtime.answers(REFRESH, passing, Answer(201, b'{"message":"has begun"}'))

    said, pauses = asks(runtime, lambda c: c.refresh("orders"))

    assert said == "has begun"
    assert len(pauses) == 1


def test_refusal_is_final(runtime: FakeRuntime) -> None:
    runtime.answers(REFRESH, Answer(400, b'{"message":"dataset \'orders\' is not accelerated"}'))

    with pytest.raises(RefusedError, match="not accelerated"):
        asks(runtime, lambda c: c.refresh("orders"))
    assert len(runtime.asked) == 1


def test_watching_ends_with_the_next_version(watch: Watch) -> None:
    looks = watch(stands(1), busy(1), busy(1, 500), stands(2))

    assert [look.loaded_rows for look in looks] == [0, 500, 0]
    assert (looks[-1].version, looks[-1].rows, looks[-1].bytes) == (2, 20, 99)


def test_first_version_is_waited_for(watch: Watch) -> None:
    nothing: dict[str, Any] = {"dataset": "orders", "status": "initializing"}

    assert watch(nothing, nothing, busy(0), stands(1))[-1].version == 1


def test_refresh_that_follows_another_is_waited_for(watch: Watch) -> None:
    looks = watch(busy(1), busy(1, is_asked_for_again=True), busy(2), stands(3))

    assert looks[0].is_asked_again
    assert looks[-1].version == 3


def test_version_of_a_refresh_before_is_not_taken_for_the_one_that_was_asked_for(
    watch: Watch,
) -> None:
    assert watch(busy(1), stands(2), busy(2), stands(3))[-1].version == 3


def test_refresh_too_quick_to_be_seen_is_over(watch: Watch) -> None:
    assert len(watch(stands(1), stands(2))) == 2


@pytest.mark.parametrize(
    "looks",
    [
        [busy(1), stands(1, error="broken")],
        [stands(1, error="broken")],
        [busy(1, error="old"), stands(1, error="old"), stands(2)],
        # Another scheduler made that version meanwhile.
        [busy(1), stands(2, error="broken")],
    ],
)
def test_failure_is_told(watch: Watch, looks: list[dict[str, Any]]) -> None:
    with pytest.raises(RefreshError, match=r"broken|old"):
        watch(stands(1, error="old"), *looks)


def test_failure_from_before_is_not_taken_for_one_of_this_refresh(watch: Watch) -> None:
    old = stands(1, error="old")

    assert watch(old, old, old, busy(1, error="old"), stands(2))[-1].version == 2


@pytest.mark.parametrize(("error", "says"), [("", "ask again"), ("old", "old")])
def test_refresh_of_which_nothing_comes_is_given_up(watch: Watch, error: str, says: str) -> None:
    with pytest.raises(RefreshError, match=says):
        watch(stands(1, error=error), stands(1, error=error))


def test_pauses_grow_to_the_longest_one(runtime: FakeRuntime) -> None:
    runtime.answers(STANDING, *told(*[busy(1)] * 6, stands(2)))

    _, pauses = asks(runtime, lambda c: list(c.watch_refresh("orders", stands(1), 0.5)))

    assert pauses == [0.1, 0.2, 0.4, 0.5, 0.5, 0.5]


def test_server_that_restarts_is_waited_for(runtime: FakeRuntime) -> None:
    runtime.answers(STANDING, *told(busy(1)), Answer(503), Answer(502), *told(busy(1), stands(2)))

    looks, _ = asks(runtime, lambda c: list(c.watch_refresh("orders", stands(1))))

    assert looks[-1].version == 2


@pytest.mark.parametrize("document", [{"version": 3}, {"version": {"number": "x"}}])
def test_what_is_no_standing_is_told(document: dict[str, Any]) -> None:
    with pytest.raises(BrokenAnswerError, match="state of a dataset"):
        refreshes.standing(document)
