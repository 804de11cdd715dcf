"""The columns of a dataset that declares none: those of its first events.

The first version has them, so they are in the state store and all schedulers agree on them.
"""

import asyncio

import pyarrow as pa

from caraway_acceleration.changes.ingesting import QueueFullError, StreamStoppedError
from caraway_acceleration.versions.current_version import CurrentVersion
from caraway_core import changes
from caraway_core.errors import DatasetError
from caraway_core.ids import TableName


class LearnedColumns:
    """Waits for the first events of one dataset, and compares the columns of later ones."""

    def __init__(self, current: CurrentVersion) -> None:
        self._current = current
        self._given: pa.Schema | None = None
        self._arrived, self._begun = asyncio.Event(), asyncio.Event()
        self._waits = False

    @property
    def is_awaited(self) -> bool:
        """True while no version has columns; the next events decide."""
        return self._waits and self.known() is None

    def source_schema(self, name: TableName) -> pa.Schema:
        """Return the columns.

        Raises:
            DatasetError: there was no event yet.
        """
        found = self.known() or self._given
        if found is None:
            raise DatasetError("unavailable", f"dataset '{name}': no event has arrived yet")
        return found

    def known(self) -> pa.Schema | None:
        """Return the columns of the current version, or None if there is none."""
        held = self._current.ours
        return held.version.schema if held is not None else None

    async def wait(self) -> None:
        """Wait for the columns of the first events, unless a version has them already."""
        current = self._current
        # Rows that came with other settings, and cannot be loaded again, are reported at once.
        is_new = current.held is None or current.subject.is_followed
        if current.ours is None and is_new:
            self._waits = True
            await self._arrived.wait()

    def found(self) -> None:
        """Note that there may be a version, possibly of another scheduler."""
        if self.known() is not None:
            self._arrived.set()

    def begun(self) -> None:
        """Note that the current version has the columns."""
        self._waits = False
        self._begun.set()

    async def take_columns(self, log: pa.Schema, deadline_s: float) -> None:
        """Take the columns of the first changes, and wait until a version has them.

        Raises:
            QueueFullError: that took too long; nothing is applied.
            StreamStoppedError: the dataset has got other columns in the meantime.
        """
        if self._given is None:
            self._given = changes.without_log(log)
        self._arrived.set()
        try:
            async with asyncio.timeout(deadline_s):
                await self._begun.wait()
        except TimeoutError:
            raise QueueFullError(
                f"dataset '{self._current.name}': its columns were not stored within "
                f"{deadline_s:.0f} s, and no change is applied; send the events again"
            ) from None
        known = self.known()
        if known is not None and not changes.log_schema(known).equals(log):
            raise StreamStoppedError(
                f"dataset '{self._current.name}' got its columns from other events in the "
                "meantime; send these again"
            )
