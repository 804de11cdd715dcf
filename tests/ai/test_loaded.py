"""Loading is retried until it works, and failures give their reason."""

import logging
from dataclasses import dataclass

import pytest

from caraway_ai import loaded
from caraway_ai.loaded import Loaded
from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import ModelAwayError, ModelError


@dataclass(slots=True)
class Lamp(Loaded[str, ModelError]):
    """Something with a name."""

    KIND = "bright lamp"

    @property
    def name(self) -> str:
        return "one"


class Attempts:
    """Fails with each reason in turn, and then gives light."""

    def __init__(self, *reasons: str) -> None:
        self.count = 0
        self._reasons = list(reasons)

    async def load(self) -> str:
        self.count += 1
        if self._reasons:
            raise ModelError(self._reasons.pop(0))
        return "light"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded, "AGAIN", Delays(0.0, 0.0))


async def test_attempts_go_on_until_one_works(caplog: pytest.LogCaptureFixture) -> None:
    lamp, attempts = Lamp(), Attempts("no current", "no current", "no bulb")
    with caplog.at_level(logging.INFO):
        assert await lamp.keep_loading(attempts.load, lambda: True)
    assert (attempts.count, lamp.load_errors) == (4, 3)
    assert lamp.callable() == "light" and lamp.error is None and lamp.was_ready
    assert [each.getMessage() for each in caplog.records] == [
        "bright lamp failed", "bright lamp failed", "bright lamp ready",
    ]  # fmt: skip
    assert {each.__dict__["lamp"] for each in caplog.records} == {"one"}


async def test_before_and_after_the_first_failure_calls_say_what_is_wrong() -> None:
    lamp = Lamp()
    with pytest.raises(ModelAwayError, match="bright lamp 'one' is still loading; try again"):
        lamp.callable()
    assert not await lamp.keep_loading(Attempts("no bulb").load, lambda: True, again=False)
    assert lamp.settled.is_set() and lamp.status == "error"
    with pytest.raises(ModelError, match="no bulb"):
        lamp.callable()


async def test_what_is_not_wanted_any_more_is_not_tried_again() -> None:
    lamp, attempts = Lamp(), Attempts("no bulb", "no bulb")
    assert not await lamp.keep_loading(attempts.load, lambda: attempts.count < 1)
    assert attempts.count == 1 and lamp.settled.is_set()


async def test_a_failure_after_it_was_ready_is_an_error_that_was_ready() -> None:
    lamp = Lamp()
    await lamp.keep_loading(Attempts().load, lambda: True)
    lamp.has_failed(ModelError("no current"))
    assert (lamp.status, lamp.was_ready, lamp.callable()) == ("error", True, "light")
