"""A scheduler that starts without the head, and its way to the executors."""

from pathlib import Path

from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.state import StateEntry
from caraway_core.settings import Address
from caraway_gateway.composition.clustering import _are_reachable
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_scheduler.membership.registrations import Registrations
from tests.kit.clocks import Clock

PLACES = {ExecutorId("a"): Address("10.0.0.1", 4000)}


class AwayStore(SqliteStateStore):
    async def scan(self, prefix: str) -> list[StateEntry]:
        raise CarawayError("state store is away")


async def test_executors_whose_addresses_are_stored_can_be_reached(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "state.db", Clock())
    registered = Registrations(store, "two", "1.0", Clock())
    await registered.renew([], {})
    assert not await _are_reachable(store)
    await registered.renew([], PLACES)
    assert await _are_reachable(store)
    await store.aclose()


async def test_a_store_that_is_away_knows_no_executors(tmp_path: Path) -> None:
    store = AwayStore(tmp_path / "state.db", Clock())
    assert not await _are_reachable(store)
    await store.aclose()
