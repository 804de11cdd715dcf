"""A cache of vectors in the result store, by the hash of model and text.

Processes share it through the store, and it outlives datasets, versions and processes. It only
saves calls of models: whatever is missing, damaged or out of reach is made again.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from caraway_core.concurrency.backoff import Cooldown, Delays
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError, DamagedChunkError
from caraway_core.protocols.embedding import EmbeddedTexts, Embedder, mark_of
from caraway_core.protocols.results import ResultStore
from caraway_plugins.embeddings import stored_segments, vectors
from caraway_plugins.embeddings.recent import key_of
from caraway_plugins.embeddings.stored_segments import Hashes, SegmentIndex, SegmentName

logger = logging.getLogger(__name__)
SEGMENT_ROWS = 2048
_LOOK_EVERY_S = 10.0
_WRITE_AFTER_S = 2.0
_FORGET_AFTER_S = 300.0
"""A process that looks for nothing needs no index."""
_READ_BYTES = 64 * 1024 * 1024
_MOST_SMALL = 16
"""More segments of less than half the rows are joined."""
_BEING_WRITTEN_MS = 600_000
"""A younger segment without an index may still be written."""
_FULL, _LEFT, _OLD = 0.75, 0.9, 0.25
_DELAYS = Delays(5.0, 300.0, jitter=0.2)
Rows = dict[bytes, bytes]


@dataclass(slots=True)
class _Index:
    """The segments of one model, and where the hash of each text is in them."""

    segments: dict[SegmentName, SegmentIndex]
    hashes: Hashes
    owners: np.ndarray
    names: list[SegmentName]

    @classmethod
    def from_segments(cls, segments: dict[SegmentName, SegmentIndex]) -> "_Index":
        names = sorted(segments)
        none = np.zeros(0, np.uint64)
        hashes = np.concatenate([none, *(segments[name].hashes for name in names)])
        owners = np.repeat(np.arange(len(names)), [len(segments[name].hashes) for name in names])
        order = np.argsort(hashes, kind="stable")
        return cls(segments, hashes[order], owners[order], names)

    def owning(self, keys: Sequence[bytes]) -> dict[SegmentName, list[bytes]]:
        """Return which segments may have keys."""
        found: dict[SegmentName, list[bytes]] = {}
        if not len(self.hashes):
            return found
        array = np.array([stored_segments.hash_of(key) for key in keys], np.uint64)
        # The newest segment with the hash, since old ones are deleted first.
        places = np.searchsorted(self.hashes, array, side="right") - 1
        for key, hash_, place in zip(keys, array, places, strict=True):
            if place >= 0 and self.hashes[place] == hash_:
                found.setdefault(self.names[self.owners[place]], []).append(key)
        return found


class StoredVectors:
    """The cache in one store. Threads share it; its methods block."""

    def __init__(
        self,
        store: ResultStore,
        most_bytes: int,
        clock: SecondsClock = time.time,
        monotonic: SecondsClock = time.monotonic,
        write_after_s: float = _WRITE_AFTER_S,
    ) -> None:
        self._store = store
        self.most_bytes = most_bytes
        self.requests = self.hits = 0
        """Texts that were looked for, and those that were found."""
        self._clock = clock
        self._monotonic = monotonic
        self._write_after_s = write_after_s
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._writing = threading.Lock()
        self._indexes: dict[str, _Index] = {}
        self._looked_s: dict[str, float] = {}
        self._old_ms = 0
        self._read: OrderedDict[SegmentName, pa.Table] = OrderedDict()
        self._waiting: dict[str, Rows] = {}
        self._closing = threading.Event()
        self._writer: threading.Thread | None = None
        self._trouble = Cooldown(_DELAYS, monotonic)

    def over(self, embedder: Embedder) -> "StoredEmbedder":
        """Return a model that is asked only for texts that are not stored."""
        return StoredEmbedder(self, embedder)

    def found(self, mark: str, keys: Sequence[bytes]) -> Rows:
        """Return the vectors that are stored, or will be soon. Never fails."""
        with self._lock:
            waiting = self._waiting.get(mark, {})
            rows = {key: waiting[key] for key in keys if key in waiting}
            self.requests += len(keys)
        missing = [key for key in keys if key not in rows]
        if missing and not self._trouble.left_s:
            try:
                rows.update(self._stored(mark, missing))
                self._trouble.succeeded()
            except CarawayError as exc:
                self._failed("read", exc)
        with self._lock:
            self.hits += len(rows)
        return rows

    def add(self, mark: str, rows: Mapping[bytes, bytes]) -> None:
        """Store vectors, a little later."""
        with self._lock:
            self._waiting.setdefault(mark, {}).update(rows)
            if self._writer is None and not self._closing.is_set():
                self._writer = threading.Thread(
                    target=self._write_soon, name="stored vectors", daemon=True
                )
                self._writer.start()

    def write(self) -> None:
        """Write what waits, then make room and join small segments. Never fails."""
        with self._writing:
            with self._lock:
                waiting, self._waiting = self._waiting, {}
            try:
                for mark, rows in waiting.items():
                    made_ms = int(self._clock() * 1000)
                    for part in _parts(rows):
                        self._shown(stored_segments.write(self._store, mark, made_ms, part))
                    self._tidy(mark)
            except CarawayError as exc:
                self._failed("written", exc)

    def close(self) -> None:
        """Write nothing more: the versions of datasets have the vectors, too."""
        self._closing.set()

    def _write_soon(self) -> None:
        self._closing.wait(self._write_after_s)
        with self._lock:
            self._writer = None
        if not self._closing.is_set():
            self.write()

    def _stored(self, mark: str, keys: Sequence[bytes]) -> Rows:
        rows: Rows = {}
        index = self._index(mark)
        again: Rows = {}
        for name, wanted in index.owning(keys).items():
            try:
                table = self._table(index.segments[name])
            except DamagedChunkError as exc:
                self._dropped(name, exc)
                continue
            found = _taken(table, wanted)
            rows.update(found)
            if name.made_ms <= self._old_ms:
                again.update(found)
        if again:
            # What is used is written again, so that it does not go with what is not.
            self.add(mark, again)
        return rows

    def _index(self, mark: str) -> _Index:
        with self._looking:
            now_s = self._monotonic()
            for other, looked_s in list(self._looked_s.items()):
                if other != mark and now_s - looked_s > _FORGET_AFTER_S:
                    del self._looked_s[other], self._indexes[other]
            if now_s - self._looked_s.get(mark, -_LOOK_EVERY_S) >= _LOOK_EVERY_S:
                self._look(mark)
            return self._indexes[mark]

    def _look(self, mark: str) -> None:
        names = stored_segments.listed(self._store)
        self._old_ms = _old_ms(names, self.most_bytes)
        known = self._indexes.get(mark, _NONE).segments
        segments = {}
        for name in names:
            if name.mark != mark:
                continue
            try:
                segments[name] = known.get(name) or stored_segments.index(self._store, name)
            except DamagedChunkError as exc:
                if self._clock() * 1000 - name.made_ms > _BEING_WRITTEN_MS:
                    self._dropped(name, exc)
        if segments.keys() != known.keys() or mark not in self._indexes:
            self._indexes[mark] = _Index.from_segments(segments)
        self._looked_s[mark] = self._monotonic()

    def _table(self, segment: SegmentIndex) -> pa.Table:
        with self._lock:
            if (table := self._read.get(segment.name)) is not None:
                self._read.move_to_end(segment.name)
                return table
        table = stored_segments.vectors(self._store, segment)
        with self._lock:
            self._read[segment.name] = table
            while sum(each.nbytes for each in self._read.values()) > _READ_BYTES:
                self._read.popitem(last=False)
        return table

    def _shown(self, segment: SegmentIndex) -> None:
        with self._looking:
            index = self._indexes.get(segment.name.mark)
            if index is not None:
                segments = {**index.segments, segment.name: segment}
                self._indexes[segment.name.mark] = _Index.from_segments(segments)

    def _dropped(self, name: SegmentName, exc: CarawayError) -> None:
        """Delete a segment that cannot be read; its texts are embedded again."""
        logger.warning("stored vectors are damaged", extra={"cause": exc.message})
        known = self._indexes.get(name.mark, _NONE).segments
        self._indexes[name.mark] = _Index.from_segments(
            {n: s for n, s in known.items() if n != name}
        )
        stored_segments.delete(self._store, name)

    def _tidy(self, mark: str) -> None:
        names = stored_segments.listed(self._store)
        total = sum(name.size_bytes for name in names)
        if total > self.most_bytes:
            for name in names:
                if total <= _LEFT * self.most_bytes:
                    break
                stored_segments.delete(self._store, name)
                total -= name.size_bytes
        small = [each for each in names if each.mark == mark and each.row_count * 2 < SEGMENT_ROWS]
        if len(small) > _MOST_SMALL:
            self._join(mark, small)

    def _join(self, mark: str, small: Sequence[SegmentName]) -> None:
        rows: Rows = {}
        joined = []
        for name in small:
            try:
                table = stored_segments.vectors(
                    self._store, stored_segments.index(self._store, name)
                )
            except DamagedChunkError:
                continue  # Another process joined it, or still writes it.
            joined.append(name)
            columns = (table.column(each).to_pylist() for each in ("key", "vector"))
            rows.update(zip(*columns, strict=True))
        for part in _parts(rows):
            made_ms = max(name.made_ms for name in joined)
            self._shown(stored_segments.write(self._store, mark, made_ms, part))
        for name in joined:
            stored_segments.delete(self._store, name)

    def _failed(self, what: str, exc: CarawayError) -> None:
        self._trouble.failed()
        logger.warning(f"stored vectors cannot be {what}", extra={"cause": exc.message})


class StoredEmbedder:
    """Implements the part of `Embedder` that `RecentVectors` calls."""

    def __init__(self, stored: StoredVectors, embedder: Embedder) -> None:
        self._stored = stored
        self._embedder = embedder
        self._mark = mark_of(embedder.identity).rpartition("-")[2]
        self.identity = embedder.identity

    @property
    def dimensions(self) -> int:
        """The length of each vector."""
        return self._embedder.dimensions

    def embed(self, texts: Sequence[str]) -> EmbeddedTexts:
        """Embed texts. Raises ModelError as the model does."""
        keys = [key_of(self.identity, text) for text in texts]
        length = self.dimensions * 4
        rows = self._stored.found(self._mark, keys)
        rows = {key: row for key, row in rows.items() if len(row) == length}
        count = 0
        if missing := [index for index, key in enumerate(keys) if key not in rows]:
            embedded_texts = self._embedder.embed([texts[index] for index in missing])
            new = dict(
                zip(
                    [keys[index] for index in missing],
                    vectors.to_bytes(embedded_texts.vectors),
                    strict=True,
                )
            )
            self._stored.add(self._mark, new)
            rows.update(new)
            count = embedded_texts.token_count
        found = vectors.from_bytes([rows[key] for key in keys], self.dimensions)
        return EmbeddedTexts(found, count)


_NONE = _Index.from_segments({})


def _taken(table: pa.Table, keys: Iterable[bytes]) -> Rows:
    """Return the vectors of whole keys; other texts may have the same hash."""
    places = {key: place for place, key in enumerate(table.column("key").to_pylist())}
    column = table.column("vector")
    return {key: column[places[key]].as_py() for key in keys if key in places}


def _parts(rows: Rows) -> Iterable[Rows]:
    items = list(rows.items())
    for first in range(0, len(items), SEGMENT_ROWS):
        yield dict(items[first : first + SEGMENT_ROWS])


def _old_ms(names: Sequence[SegmentName], most_bytes: int) -> int:
    """Return when the last of the segments was made that go soon; 0 while there is room."""
    if sum(name.size_bytes for name in names) < _FULL * most_bytes:
        return 0
    before = 0
    for name in names:
        before += name.size_bytes
        if before > _OLD * most_bytes:
            return name.made_ms
    return 0
