"""The vectors that were made last: a load that failed and is tried again asks only for the rest."""

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.protocols.embedding import EmbeddedTexts
from caraway_plugins.embeddings import vectors

MOST_BYTES = 64 * 1024 * 1024
_ENTRY_BYTES = 200
"""What an entry takes in addition to its vector."""


class RecentModel(Protocol):
    """What is asked of an `Embedder`."""

    @property
    def identity(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> EmbeddedTexts: ...


class RecentVectors:
    """Vectors by the hash of model and text, within a number of bytes. Threads share it."""

    def __init__(
        self,
        most_bytes: int = MOST_BYTES,
        ttl_s: float | None = None,
        clock: SecondsClock = time.monotonic,
    ) -> None:
        """Keep vectors for a time, or without one until room is needed."""
        self.most_bytes = most_bytes
        self.requests = self.hits = 0
        """Texts that were looked for, and those whose vectors were known."""
        self._ttl_s = ttl_s
        self._clock = clock
        self._found: OrderedDict[bytes, tuple[bytes, float]] = OrderedDict()
        self.size_bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._found)

    def embedded(self, embedder: RecentModel, texts: Sequence[str]) -> pa.FixedSizeListArray:
        """Return the vectors of texts, and ask the model for those that are not known.

        Raises:
            ModelError: the call failed.
        """
        keys = [key_of(embedder.identity, text) for text in texts]
        with self._lock:
            known = {key: row for key in keys if (row := self._get(key)) is not None}
            self.requests += len(keys)
            self.hits += sum(key in known for key in keys)
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
        now = self._clock()
        with self._lock:
            for key, row in new.items():
                self._drop(key)
                self._found[key] = row, now
                self.size_bytes += len(row) + _ENTRY_BYTES
            while self.size_bytes > self.most_bytes:
                self._drop(next(iter(self._found)))
        return new

    def _get(self, key: bytes) -> bytes | None:
        if (found := self._found.get(key)) is None:
            return None
        row, kept_at = found
        if self._ttl_s is not None and kept_at + self._ttl_s <= self._clock():
            self._drop(key)
            return None
        self._found.move_to_end(key)
        return row

    def _drop(self, key: bytes) -> None:
        if (found := self._found.pop(key, None)) is not None:
            self.size_bytes -= len(found[0]) + _ENTRY_BYTES


def key_of(identity: str, text: str) -> bytes:
    """Return the hash of a model and a text."""
    digest = hashlib.sha256(identity.encode())
    digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
    return digest.digest()
