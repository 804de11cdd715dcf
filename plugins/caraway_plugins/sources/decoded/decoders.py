"""The decoder of each format: the columns of a file, and its rows."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from caraway_plugins.sources.decoded import declared, documents, orc_files
from caraway_plugins.sources.storage import FoundFile, Storage


class Decoder(Protocol):
    """Reads files of one format. Its methods block."""

    def schema(self, storage: Storage, found: FoundFile) -> pa.Schema:
        """Return the columns of a file.

        Raises:
            DatasetError: the file is damaged, or has another format.
        """
        ...

    def batches(
        self, storage: Storage, found: FoundFile, columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file: those of the columns that it has, as they are in the file.

        Raises:
            DatasetError: the file cannot be read.
        """
        ...


def of(format_: str, *, is_normalized: bool) -> Decoder:
    """Return the decoder of a format. It can give columns names that need no quotes."""
    if format_ in declared.DOCUMENTS:
        return documents.DocumentDecoder(format_)
    return orc_files.OrcDecoder(is_normalized)
