"""ORC files, by Arrow's reader."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.sqltext import identifiers
from caraway_plugins.sources import storage as storages
from caraway_plugins.sources.decoded import current_files
from caraway_plugins.sources.storage import FoundFile, Storage

_BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class OrcDecoder:
    """Reads stripe after stripe, and of each the columns of the request."""

    is_normalized: bool

    def schema(self, storage: Storage, found: FoundFile) -> pa.Schema:
        """See `Decoder.schema`."""
        with _opened(storage, found) as file:
            return pa.schema([*zip(self._names(file), file.schema.types, strict=True)])

    def batches(
        self, storage: Storage, found: FoundFile, columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """See `Decoder.batches`."""
        with _opened(storage, current_files.find(storage, found)) as file:
            own = file.schema.names
            given = dict(zip(self._names(file), own, strict=True))
            # Rows without a column are still counted.
            chosen = [name for name in columns if name in given] or [*given][:1]
            names = [given[name] for name in chosen]
            # The reader takes a point in a name for a field of a struct.
            asked = None if any("." in name for name in own) else names
            for number in range(file.nstripes):
                stripe = file.read_stripe(number, columns=asked)
                arrays = [stripe.column(name) for name in names]
                batch = pa.RecordBatch.from_arrays(arrays, chosen)
                for start in range(0, batch.num_rows, _BATCH_ROWS):
                    yield batch.slice(start, _BATCH_ROWS)

    def _names(self, file: Any) -> Sequence[str]:
        names: Sequence[str] = file.schema.names
        return identifiers.normalized(names) if self.is_normalized else names


@contextmanager
def _opened(storage: Storage, file: FoundFile) -> Iterator[Any]:
    from pyarrow import orc  # Here: a library of its own, which few datasets need.

    try:
        with storages.opened(storage, file) as stream:
            yield orc.ORCFile(pa.PythonFile(stream, mode="r"))
    except (pa.ArrowException, OSError, ValueError) as exc:
        title = storage.title(file.path)
        raise DatasetError(
            "invalid", f"'{title}' is damaged or is not an ORC file; replace it"
        ) from exc
