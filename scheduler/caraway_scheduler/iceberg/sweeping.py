"""Deletes what was published of states of tables that were replaced long ago."""

import time
from collections.abc import Callable

from caraway_plugins.stores.published import Published
from caraway_scheduler.iceberg.publishing import KEY_LENGTH

KEPT_S = 3600.0
"""How long readers of a state may go on after it was replaced."""


class StateSweeper:
    """Knows since when each state is replaced. A restart begins the time again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._replaced: dict[tuple[str, str], float] = {}

    def sweep(self, place: Published, uuid: str, current: str) -> None:
        """Look at the states of a table, and delete those that were replaced long ago.

        This blocks. `current` is the key of the state that is served; "": none is.

        Raises:
            ExecutionError: the place cannot be used.
        """
        now = self._clock()
        for name in place.folders(uuid):
            state = uuid, name
            if name == current[:KEY_LENGTH]:
                self._replaced.pop(state, None)
            elif now - self._replaced.setdefault(state, now) > KEPT_S:
                place.delete(f"{uuid}/{name}")
                del self._replaced[state]
