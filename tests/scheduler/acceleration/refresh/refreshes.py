"""States and events of refreshes."""

from dataclasses import replace

from caraway_core.ids import TableName
from caraway_scheduler.acceleration.recipes import statements
from caraway_scheduler.acceleration.refresh import refreshing
from caraway_scheduler.acceleration.refresh.overrides import RefreshOverrides
from caraway_scheduler.acceleration.refresh.refresh_events import (
    Effect,
    Event,
    RunNumber,
)
from caraway_scheduler.acceleration.refresh.refreshing import RefreshState

ORDERS = TableName("orders")
NEW = RefreshState(ORDERS)
LOADED = replace(NEW, version=7)
FULL = RefreshOverrides(refresh_mode="full")
SOME = RefreshOverrides(statements.refresh_sql("SELECT * FROM orders WHERE id > 5", ORDERS))
ONE, TWO = RunNumber(1), RunNumber(2)


def after(state: RefreshState, *happened: Event) -> tuple[RefreshState, list[Effect]]:
    """Return the state and the effects of the last event."""
    effects: tuple[Effect, ...] = ()
    for event in happened:
        state, effects = refreshing.apply(state, event)
    return state, list(effects)
