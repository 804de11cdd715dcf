"""States and events of refreshes."""

from dataclasses import replace

from caraway_acceleration.recipes import statements
from caraway_acceleration.refresh import refreshing
from caraway_acceleration.refresh.overrides import RefreshOverrides
from caraway_acceleration.refresh.refresh_events import (
    Effect,
    Event,
    RunNumber,
)
from caraway_acceleration.refresh.refreshing import RefreshState
from caraway_core.ids import TableName

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
