"""Tables of tasks that ran over a channel, until a scheduler takes them through Ray.

Everything here runs on the loop of the worker.
"""

import asyncio
from collections.abc import Sequence

import pyarrow as pa

from caraway_core.errors import PartLostError

KEPT_S = 60.0
"""A scheduler takes tables as soon as it is told of them, unless it ends meanwhile."""


class KeptTables:
    """Keeps the tables of a call for a while."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Sequence[pa.Table], asyncio.TimerHandle]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, call: str, tables: Sequence[pa.Table]) -> None:
        """Keep the tables of a call until they are taken, forgotten, or too old."""
        ends = asyncio.get_running_loop().call_later(KEPT_S, self.forget, call)
        self._kept[call] = tables, ends

    async def take(self, call: str) -> Sequence[pa.Table]:
        """Return the tables of a call, and keep them no more.

        Raises:
            PartLostError: they are not kept.
        """
        if call not in self._kept:
            raise PartLostError("the rows of a task were not taken in time", None)
        tables, ends = self._kept.pop(call)
        ends.cancel()
        return tables

    def forget(self, call: str) -> None:
        """Let go of the tables of a call, if there are any."""
        if call in self._kept:
            _, ends = self._kept.pop(call)
            ends.cancel()
