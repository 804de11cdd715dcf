"""Caches recent answers to requests for vectors."""

import hashlib
from collections.abc import Sequence

from caraway_core.concurrency.answer_cache import AnswerCache
from caraway_core.protocols.embedding import EmbeddedTexts

_EVERYBODY = ""
_ENTRY_BYTES = 500


class KeptAnswers(AnswerCache[bytes, EmbeddedTexts]):
    """The cache of whole answers, which have the tokens that were counted.

    The vectors of a text are the same for everybody, so callers share them.
    """

    WHAT = "cached vectors"

    def put(self, key: bytes, answer: EmbeddedTexts) -> None:
        """Cache an answer as `add` does."""
        self.add(_EVERYBODY, key, answer, int(answer.vectors.nbytes) + _ENTRY_BYTES)


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
