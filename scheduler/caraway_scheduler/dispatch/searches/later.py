"""The service that searches tables, before it is there: it needs what needs the dispatch."""

from caraway_core.errors import UnavailableError
from caraway_core.protocols.searching import FoundRows, SearchTables, SearchWay
from caraway_core.sqltext.searching import TableSearch
from caraway_core.statements import ReadPoint


class LaterSearchTables:
    """Searches by `tables`, once it is set."""

    def __init__(self) -> None:
        self.tables: SearchTables | None = None

    async def search(self, search: TableSearch, at: ReadPoint) -> FoundRows:
        """See `SearchTables.search`."""
        return await self._known().search(search, at)

    async def explain(self, search: TableSearch, at: ReadPoint) -> SearchWay:
        """See `SearchTables.explain`."""
        return await self._known().explain(search, at)

    def _known(self) -> SearchTables:
        if self.tables is None:
            raise UnavailableError("the runtime is starting and cannot search yet; try again")
        return self.tables
