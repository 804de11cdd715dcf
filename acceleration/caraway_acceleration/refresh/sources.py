"""What loads of a dataset ask about its source and its models."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.manifest import Dataset
from caraway_core.protocols.change_sources import ChangeSource
from caraway_core.protocols.embedding import Embedder


class DatasetSources(Protocol):
    """The sources of datasets; the catalog implements it."""

    def source_schema(self, name: TableName) -> pa.Schema:
        """Return the columns of a source.

        Raises:
            DatasetError: it is not loaded yet.
        """
        ...

    def source_bytes(self, name: TableName) -> int:
        """Return the size of a source in bytes; 0 if it is unknown."""
        ...

    async def renew(self, name: TableName) -> None:
        """Check a source before its rows are loaded: its columns may have changed.

        Raises:
            DatasetError: it cannot be read.
        """
        ...

    def params(self, dataset: Dataset) -> Mapping[str, str]:
        """Return the params of a dataset, with its secrets."""
        ...

    def change_source(
        self, dataset: Dataset, learned: Callable[[], pa.Schema | None]
    ) -> ChangeSource | None:
        """Return the source of a dataset's changes, or None if others send them."""
        ...


class VectorModels(Protocol):
    """The embedding models of columns; the embeddings service implements it."""

    async def settled_embedder(self, name: str) -> Embedder:
        """Return a model, after waiting for the first attempt to load it."""
        ...

    async def vectors(self, name: str, texts: Sequence[str]) -> pa.FixedSizeListArray:
        """Return the vectors of texts."""
        ...
