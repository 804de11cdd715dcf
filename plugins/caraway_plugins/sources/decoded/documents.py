"""Documents: each file is one row, with its place and its text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_plugins.sources.decoded import current_files, texts
from caraway_plugins.sources.storage import FoundFile, Storage

MOST_BYTES = 64 * 2**20
"""The largest file whose text is read."""
SCHEMA = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("content", pa.string()),
        pa.field("size", pa.int64()),
        pa.field("last_modified", pa.timestamp("us", "+00:00")),
    ]
)
_CONTENT = "content"


def known(storage: Storage, found: FoundFile) -> Mapping[str, Any]:
    """Return the values of a row that the listing has."""
    return {
        "location": storage.title(found.path),
        "size": found.size_bytes,
        "last_modified": datetime.fromtimestamp(found.modified_s, UTC),
    }


@dataclass(frozen=True, slots=True)
class DocumentDecoder:
    """Reads the text of one file; a request without `content` opens none."""

    format: str

    def schema(self, _storage: Storage, _found: FoundFile) -> pa.Schema:
        """See `Decoder.schema`. No file is opened."""
        return SCHEMA

    def batches(
        self, storage: Storage, found: FoundFile, columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """See `Decoder.batches`."""
        row = dict(known(storage, found))
        if _CONTENT in columns:
            row[_CONTENT] = self._text(storage, found)
        schema = pa.schema([field for field in SCHEMA if field.name in columns])
        yield pa.RecordBatch.from_pylist([row], schema)

    def _text(self, storage: Storage, listed: FoundFile) -> str:
        file = current_files.find(storage, listed)
        title = storage.title(file.path)
        if file.size_bytes > MOST_BYTES:
            raise DatasetError(
                "unsupported",
                f"'{title}' has {file.size_bytes >> 20} MiB; documents may have "
                f"{MOST_BYTES >> 20} MiB: divide it, or leave it out with a pattern in `from`",
            )
        content = storage.read(file.path, 0, file.size_bytes) if file.size_bytes else b""
        try:
            return texts.read(self.format, content)
        except texts.NoTextError as exc:
            raise DatasetError("invalid", f"'{title}' {exc}") from exc
