"""Keeps the sessions of earlier catalogs, for tasks that were planned over them."""

import weakref

from caraway_core.statements import CatalogSnapshot
from caraway_engine.sessions.sessions import Session


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
