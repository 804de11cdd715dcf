"""Provides the query of an accelerated view as its source."""

from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import ViewTable


class ViewSource:
    """Implements `Source`; the query is checked when the catalog is installed."""

    capabilities = SourceCapabilities()

    def resolve(self, request: SourceRequest) -> ViewTable:
        """Return the view's query as a table."""
        return ViewTable(request.path)

    def fingerprint(self, request: SourceRequest) -> str | None:
        """Return None: the data of a query has no fingerprint."""
        return None
