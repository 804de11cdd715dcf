"""Sessions of earlier catalogs, for tasks of queries that were planned over them."""

import weakref

from caraway_core.protocols.dispatch import CatalogSnapshot
from caraway_engine.sessions.sessions import Session


class KeptCatalog:
    """A catalog, and its session unless that has gone: it can be made again."""

    def __init__(self, session: Session) -> None:
        self.snapshot: CatalogSnapshot = session.snapshot
        self._held: Session | None = session
        self._seen = weakref.ref(session)

    def session(self) -> Session | None:
        return self._seen()

    def reopened(self, session: Session) -> None:
        self._seen = weakref.ref(session)

    def loosen(self, newer: Session | None) -> None:
        """Keep the session no longer than statements read it, if it would cost memory.

        An earlier version of an accelerated dataset, beside that of the newer session, would
        double what the dataset takes.
        """
        if self._held is None or newer is None:
            return
        current = {id(each) for each in newer.versions}
        if any(each.is_held and id(each) not in current for each in self._held.versions):
            self._held = None
