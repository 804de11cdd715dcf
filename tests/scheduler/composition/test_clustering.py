"""Whether a scheduler that starts without the head leaves requests to others."""

from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.dispatch import ExecutorStatus
from caraway_core.protocols.state import StateEntry
from caraway_core.settings import Address
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_scheduler.composition.clustering import _others_serve
from caraway_scheduler.membership.registrations import Registrations
from tests.kit.clocks import Clock

A = ExecutorStatus(ExecutorId("a"), "ready", address="a.test")
PLACE = Address("10.0.0.1", 4000)


class AwayStore(SqliteStateStore):
    async def scan(self, prefix: str) -> list[StateEntry]:
        raise CarawayError("state store is away")


@pytest.mark.parametrize(
    ("other", "channels", "serve"),
    [
        pytest.param(False, {}, False, id="alone"),
        pytest.param(True, {}, True, id="another scheduler has executors, and this one none"),
        pytest.param(True, {A.executor_id: PLACE}, False, id="executors can be reached"),
    ],
)
async def test_others_serve_where_this_one_reaches_no_executors(
    tmp_path: Path, other: bool, channels: dict[ExecutorId, Address], serve: bool
) -> None:
    store = SqliteStateStore(tmp_path / "state.db", Clock())
    name = "two" if other else "one"
    await Registrations(store, name, "1.0", Clock()).renew([A], channels)
    assert await _others_serve(store, "one") is serve
    await store.aclose()


async def test_nobody_else_serves_if_the_store_does_not_say(tmp_path: Path) -> None:
    store = AwayStore(tmp_path / "state.db", Clock())
    assert not await _others_serve(store, "one")
    await store.aclose()
