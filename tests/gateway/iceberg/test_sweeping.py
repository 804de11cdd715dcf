"""Published states of tables are deleted once nobody used them for long."""

from typing import Any

from caraway_gateway.iceberg.states import KEY_LENGTH
from caraway_gateway.iceberg.sweeping import KEPT_S, StateSweeper
from tests.kit.clocks import Clock

NEW, OLD = "n" * KEY_LENGTH, "o" * KEY_LENGTH


class Place:
    """Folders of one table."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)

    def folders(self, folder: str) -> list[str]:
        assert folder == "table"
        return list(self.names)

    def delete(self, folder: str) -> None:
        self.names.remove(folder.removeprefix("table/"))


def test_a_state_is_kept_for_its_readers_and_then_deleted() -> None:
    clock, place = Clock(), Place(NEW, OLD)
    any_place: Any = place
    sweeper = StateSweeper(clock)
    sweeper.sweep(any_place, "table", [NEW + "more"])
    clock.now += KEPT_S
    sweeper.sweep(any_place, "table", [NEW])
    assert place.names == [NEW, OLD]
    clock.now += 1
    sweeper.sweep(any_place, "table", [NEW])
    assert place.names == [NEW]


def test_a_state_that_is_used_again_has_its_whole_time_again() -> None:
    clock, place = Clock(), Place(OLD)
    any_place: Any = place
    sweeper = StateSweeper(clock)
    for used in ((), (OLD,), ()):
        sweeper.sweep(any_place, "table", used)
        clock.now += KEPT_S
    sweeper.sweep(any_place, "table")
    assert place.names == [OLD]
    clock.now += 1
    sweeper.sweep(any_place, "table")
    assert place.names == []
