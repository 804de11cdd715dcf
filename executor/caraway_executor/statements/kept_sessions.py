"""The sessions of an executor: of the newest catalog, and of earlier ones that tasks still need."""

import asyncio
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from threading import Lock
from weakref import WeakValueDictionary

from caraway_core.errors import CatalogMovedError, ShuttingDownError
from caraway_core.ids import CatalogVersion, TableName
from caraway_core.protocols.fleet import Pinned
from caraway_core.statements import CatalogSnapshot, Statement, ViewFacts
from caraway_core.tables import StoredTable
from caraway_engine.sessions.sessions import Session
from caraway_engine.stored import StoredVersion


class KeptCatalog:
    """A catalog, and its session unless that was freed; it can be rebuilt."""

    def __init__(self, session: Session) -> None:
        self.snapshot: CatalogSnapshot = session.snapshot
        self._held: Session | None = session
        self._seen = weakref.ref(session)

    def session(self) -> Session | None:
        """Return the session, or None if it was freed."""
        return self._seen()

    def reopened(self, session: Session) -> None:
        """Record a rebuilt session, without keeping it alive."""
        self._seen = weakref.ref(session)

    def loosen(self, newer: Session | None) -> None:
        """Keep the session only while statements read it, if it would cost memory.

        Keeping an earlier version of an accelerated dataset next to the newer one would double the
        memory of that dataset.
        """
        if self._held is None or newer is None:
            return
        current = {id(each) for each in newer.versions}
        if any(each.is_held and id(each) not in current for each in self._held.versions):
            self._held = None


class KeptSessions:
    """The sessions of the catalogs that statements can run over, and versions loaded ahead of one.

    Threads prepare and publish catalogs while the loop loads versions and starts statements.
    """

    def __init__(self, make: Callable[[CatalogSnapshot], Session], target_partitions: int) -> None:
        """Take what makes an empty session over a snapshot."""
        self._make = make
        self._target_partitions = target_partitions
        self._newest: Session | None = None
        self._prepared: Session | None = None
        self._kept: Mapping[CatalogVersion, KeptCatalog] = {}
        self._coming: dict[TableName, StoredVersion] = {}
        # Shares of a version that are loaded concurrently must belong to one object.
        self._loading: WeakValueDictionary[tuple[TableName, str], StoredVersion] = (
            WeakValueDictionary()
        )
        self._moving = Lock()

    @property
    def newest(self) -> Session | None:
        """The session that new statements use."""
        return self._newest

    @property
    def prepared_views(self) -> Mapping[TableName, ViewFacts]:
        """The facts of the views in the catalog that was prepared but not yet published."""
        return {} if self._prepared is None else self._prepared.views

    @property
    def kept(self) -> tuple[CatalogVersion, ...]:
        """The catalog versions that statements can run over."""
        return tuple(self._kept)

    def prepare(
        self,
        snapshot: CatalogSnapshot,
        others: Sequence["KeptSessions"],
        note: Callable[[TableName | None], None],
    ) -> Mapping[TableName, str]:
        """Register a snapshot, and reuse its unchanged tables; statements see it after `publish`.

        Returns an error message for each table that failed.
        """
        session = self._make(snapshot)
        coming = [*chain.from_iterable(each._loaded() for each in (self, *others))]
        previous = (self._newest, *(each.newest for each in others))
        failed = session.install(*previous, versions=coming, note=note)
        self._prepared = session
        return failed

    def publish(self) -> None:
        """Make the last prepared snapshot visible to new statements."""
        session, self._prepared = self._prepared, None
        if session is None:
            return
        here = list(session.versions)
        with self._moving:
            self._newest = session
            self._coming = {name: each for name, each in self._coming.items() if each not in here}
            for each in self._kept.values():
                each.loosen(session)
            self._kept = {**self._kept, session.snapshot.version: KeptCatalog(session)}

    def release(self, pinned: Pinned | None) -> None:
        """Release the catalogs that no statement needs; None releases all but the newest."""
        with self._moving:
            newest = None if self._newest is None else self._newest.snapshot.version
            self._kept = {
                version: kept
                for version, kept in self._kept.items()
                if version == newest or (pinned is not None and pinned.needs(version))
            }

    def current(self) -> Session:
        """Return the session that new statements use.

        Raises:
            ShuttingDownError: there is no catalog yet, or no longer one.
        """
        if self._newest is None:
            raise ShuttingDownError("the executor has no catalog yet")
        return self._newest

    async def session_of(self, statement: Statement) -> Session:
        """Return the session of the catalog that a statement names, or the newest one.

        Raises:
            CatalogMovedError: that catalog is not available.
            ShuttingDownError: there is no catalog yet.
        """
        if statement.catalog_version is None:
            return self.current()
        return await self.over(statement.catalog_version)

    def at_hand(self, version: CatalogVersion | None) -> Session | None:
        """Return the session of a catalog version, or the newest one; None if it is not here."""
        if version is None:
            return self._newest
        kept = self._kept.get(version)
        return None if kept is None else kept.session()

    async def over(self, version: CatalogVersion) -> Session:
        """Return the session of a catalog version, rebuilt if it was freed.

        Raises:
            CatalogMovedError: that catalog is not available.
        """
        kept = self._kept.get(version)
        if kept is None:
            raise CatalogMovedError(version)
        session = kept.session()
        if session is None:
            session = await asyncio.to_thread(self._reopened, kept)
        return session

    def loosen(self, version: CatalogVersion) -> None:
        """Keep the session of a catalog only while statements read it; see `KeptCatalog.loosen`."""
        if (kept := self._kept.get(version)) is not None:
            kept.loosen(self._newest)

    def version_of(self, table: TableName, spec: StoredTable) -> StoredVersion:
        """Return the version of a dataset that is here or being loaded, or a new empty one."""
        current = self._newest.versions.by_name.get(table) if self._newest else None
        for version in (current, self._coming.get(table), self._loading.get((table, spec.key))):
            if version is not None and version.spec == spec:
                return version
        stored_version = StoredVersion(table, spec, self._target_partitions)
        self._loading[table, spec.key] = stored_version
        return stored_version

    def keep_loaded(self, table: TableName, version: StoredVersion) -> None:
        """Keep a version until a catalog names it, or another one of its dataset is loaded."""
        with self._moving:
            if self._newest is None or version not in list(self._newest.versions):
                self._coming[table] = version

    def clear(self) -> None:
        """Release all sessions."""
        self._newest = self._prepared = None
        self._kept = {}
        self._coming = {}

    def _loaded(self) -> list[StoredVersion]:
        with self._moving:
            return list(self._coming.values())

    def _reopened(self, kept: KeptCatalog) -> Session:
        """Rebuild the session of an earlier catalog; it lives as long as its readers."""
        session = self._make(kept.snapshot)
        session.install(self._newest)
        kept.reopened(session)
        return session
