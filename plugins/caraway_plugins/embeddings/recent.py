"""The vectors that were made last: a load that failed and is tried again asks only for the rest."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

import pyarrow as pa

from caraway_core.protocols.embedding import Embedder
from caraway_plugins.embeddings import vectors

MOST_BYTES = 64 * 1024 * 1024
_ENTRY_BYTES = 200
"""What an entry takes in addition to its vector."""


class RecentVectors:
    """Vectors by the hash of model and text, within a number of bytes. Threads share it."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._found: OrderedDict[bytes, bytes] = OrderedDict()
        self._size_bytes = 0
        self._lock = threading.Lock()

    def embedded(self, embedder: Embedder, texts: Sequence[str]) -> pa.FixedSizeListArray:
        """Return the vectors of texts, and ask the model for those that are not known.

        Raises:
            ModelError: the call failed.
        """
        keys = [_key(embedder, text) for text in texts]
        with self._lock:
            known = {key: self._found[key] for key in keys if key in self._found}
            for key in known:
                self._found.move_to_end(key)
        missing = [index for index, key in enumerate(keys) if key not in known]
        if not known:
            made = embedder.embed(texts).vectors
            self._keep(keys, made)
            return made
        if missing:
            made = embedder.embed([texts[index] for index in missing]).vectors
            known.update(self._keep([keys[index] for index in missing], made))
        return vectors.from_bytes([known[key] for key in keys], embedder.dimensions)

    def _keep(self, keys: Sequence[bytes], made: pa.FixedSizeListArray) -> dict[bytes, bytes]:
        new = dict(zip(keys, vectors.to_bytes(made), strict=True))
        with self._lock:
            for key, row in new.items():
                if key not in self._found:
                    self._size_bytes += len(row) + _ENTRY_BYTES
                self._found[key] = row
            while self._size_bytes > self._most_bytes:
                _, row = self._found.popitem(last=False)
                self._size_bytes -= len(row) + _ENTRY_BYTES
        return new


def _key(embedder: Embedder, text: str) -> bytes:
    digest = hashlib.sha256(embedder.identity.encode())
    digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
    return digest.digest()
