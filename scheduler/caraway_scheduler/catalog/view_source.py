"""The source of an accelerated view: the query that it is."""

from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import ViewTable


class ViewSource:
    """Implements `Source`; whether the query can be planned shows when it is installed."""

    capabilities = SourceCapabilities()

    def resolve(self, request: SourceRequest) -> ViewTable:
        return ViewTable(request.path)

    def fingerprint(self, request: SourceRequest) -> str | None:
        return None
