"""A state store that is not there yet."""

import logging
from collections.abc import Sequence
from typing import Any, cast

import pytest

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import CarawayError, StateAwayError
from caraway_core.protocols.state import StateStore
from caraway_gateway.composition import state


class Store:
    """Fails with what the test has written down, then answers."""

    def __init__(self, *failures: CarawayError) -> None:
        self.failures = list(failures)

    async def check(self) -> Sequence[str]:
        if self.failures:
            raise self.failures.pop(0)
        return ["a warning"]


async def check(store: Store, **limits: Any) -> Sequence[str]:
    return await state.check(cast(StateStore, store), delays=Delays(0, 0), **limits)


async def test_store_that_is_away_is_waited_for_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        assert await check(Store(*[StateAwayError("away")] * 3)) == ["a warning"]
    assert [record.message for record in caplog.records] == ["waits for the state store"]


async def test_wait_is_bounded() -> None:
    with pytest.raises(StateAwayError, match="away"):
        await check(Store(*[StateAwayError("away")] * 3), patience_s=-1.0)


async def test_store_that_cannot_be_used_is_told_at_once() -> None:
    store = Store(CarawayError("wrong password"), CarawayError("another"))
    with pytest.raises(CarawayError, match="wrong password"):
        await check(store)
