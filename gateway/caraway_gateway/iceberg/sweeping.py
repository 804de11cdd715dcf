"""Deletes published files of states of tables that were in use long ago."""

import time
from collections.abc import Collection

from caraway_core.concurrency.clocks import SecondsClock
from caraway_gateway.iceberg.states import KEY_LENGTH
from caraway_plugins.stores.published import Published

KEPT_S = 3600.0
"""Time that readers of a state may go on after clients do not see it any more."""


class StateSweeper:
    """Knows since when each state is unused. A restart begins the time again."""

    def __init__(self, clock: SecondsClock = time.monotonic) -> None:
        self._clock = clock
        self._unused: dict[tuple[str, str], float] = {}

    def sweep(self, place: Published, uuid: str, used: Collection[str] = ()) -> None:
        """Look at the states of a table, and delete those that were in use long ago.

        This blocks. `used` are the keys of the states that its snapshots have.

        Raises:
            ExecutionError: the place cannot be used.
        """
        now = self._clock()
        kept = {key[:KEY_LENGTH] for key in used}
        for name in place.folders(uuid):
            state = uuid, name
            if name in kept:
                self._unused.pop(state, None)
            elif now - self._unused.setdefault(state, now) > KEPT_S:
                place.delete(f"{uuid}/{name}")
                del self._unused[state]
