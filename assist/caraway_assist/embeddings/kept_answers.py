"""Keeps recent answers to requests for vectors, limited in bytes and age."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from caraway_core.manifest.values.runtime import EmbeddingsCacheSettings
from caraway_core.protocols.embedding import EmbeddedTexts

_LARGEST_SHARE = 8
"""Answers larger than an eighth of the cache are not kept, because they evict too much."""
_ENTRY_BYTES = 500


class KeptAnswers:
    """An LRU cache of whole answers, which have the tokens that were counted. One loop uses it.

    The vectors of a text are the same for everybody, so callers share them.
    """

    def __init__(
        self, settings: EmbeddingsCacheSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.settings = settings
        self.requests = self.hits = 0
        self.size_bytes = 0
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[EmbeddedTexts, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: bytes) -> EmbeddedTexts | None:
        """Return a valid answer, or None, and count the request."""
        self.requests += 1
        if (found := self._kept.get(key)) is None:
            return None
        answer, kept_at = found
        ttl_s = self.settings.item_ttl_s
        if ttl_s is not None and kept_at + ttl_s <= self._clock():
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        self.hits += 1
        return answer

    def put(self, key: bytes, answer: EmbeddedTexts) -> None:
        """Keep an answer, unless it is too large."""
        if _size(answer) > self.settings.max_size_bytes // _LARGEST_SHARE:
            return
        self._drop(key)
        self._kept[key] = answer, self._clock()
        self.size_bytes += _size(answer)
        while self.size_bytes > self.settings.max_size_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: bytes) -> None:
        if (found := self._kept.pop(key, None)) is not None:
            self.size_bytes -= _size(found[0])


def key_of(
    identity: str,
    items: Sequence[str] | Sequence[Sequence[int]],
    *,
    is_tokens: bool,
    dimensions: int | None,
) -> bytes:
    """Return a hash of a request, which differs for every other one."""
    digest = hashlib.sha256(f"{identity}\0{is_tokens}\0{dimensions}\0{len(items)}".encode())
    for item in items:
        text = item if isinstance(item, str) else " ".join(map(str, item))
        content = text.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.digest()


def _size(answer: EmbeddedTexts) -> int:
    return int(answer.vectors.nbytes) + _ENTRY_BYTES
