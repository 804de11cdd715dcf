"""Which accelerated datasets copy rows of others, and how far the rows of those are."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence

from caraway_acceleration.accelerated import Accelerated
from caraway_core.ids import TableName
from caraway_core.statements import ViewFacts
from caraway_scheduler.catalog.states import source_of

Planned = Callable[[], Mapping[TableName, ViewFacts]]
Revisions = Callable[[Sequence[TableName]], Awaitable[Sequence[int]]]


class Parents:
    """The accelerated datasets that others read through views or other datasets, and copy."""

    def __init__(
        self, kept: Mapping[TableName, Accelerated], planned: Planned, revisions: Revisions
    ) -> None:
        """Create it over `kept`, a mapping that changes as datasets are added and removed.

        `planned` returns what the catalog knows of its views, `revisions` those of versions.
        """
        self._kept = kept
        self._planned = planned
        self._revisions = revisions

    def parents_of(self, name: TableName) -> Sequence[TableName]:
        """Return the accelerated datasets whose rows an accelerated dataset copies."""
        facts = self._planned().get(source_of(name))
        reads = facts.reads if facts is not None else frozenset()
        return sorted(reads & self._kept.keys() - {name})

    def moved(self, name: TableName) -> None:
        """Have those refreshed that copy the rows of a dataset, since it has others now."""
        for each, kept in self._kept.items():
            if kept.plan.is_following and name in self.parents_of(each):
                kept.refresher.parents_moved()

    async def position(self, name: TableName) -> str | None:
        """Return a text that tells apart the states of the datasets that a dataset copies.

        They are read as they are in the state store, so schedulers agree about it. None: there are
        no such datasets.
        """
        names = self.parents_of(name)
        states: list[tuple[str, ...]] = []
        for each, revision in zip(names, await self._revisions(names), strict=True):
            if (kept := self._kept.get(each)) is None:
                continue
            await kept.reach(revision)
            if (shown := kept.current.shown) is not None:
                log = shown.read_log
                last = log[-1].chunk.checksum if log else ""
                states.append((each, *(part.key for part in shown.parts), str(len(log)), last))
        text = repr(states)
        return hashlib.sha256(text.encode()).hexdigest() if states else None
