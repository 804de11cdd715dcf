"""Sources of datasets that tests refresh without a catalog."""

from collections.abc import Callable, Mapping

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.manifest import Dataset
from caraway_core.protocols.change_sources import ChangeSource


class GivenSources:
    """All sources have these columns, an unknown size and no changes of their own."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def source_schema(self, _name: TableName) -> pa.Schema:
        return self._schema

    def source_bytes(self, _name: TableName) -> int:
        return 0

    async def renew(self, name: TableName) -> None:
        return

    def params(self, _dataset: Dataset) -> Mapping[str, str]:
        return {}

    def change_source(
        self, _dataset: Dataset, _learned: Callable[[], pa.Schema | None]
    ) -> ChangeSource | None:
        return None
