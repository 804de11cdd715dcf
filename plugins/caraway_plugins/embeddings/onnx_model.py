"""Sentence encoders in ONNX files: a tokenizer, a transformer and pooling, in this process."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
import onnxruntime

from caraway_core.errors import ModelError, ModelInputError
from caraway_core.process import cores
from caraway_core.protocols.embedding import EmbeddedTexts
from caraway_plugins import onnx_files
from caraway_plugins.embeddings import vectors
from caraway_plugins.onnx_files import OnnxFiles

Pooling = Literal["mean", "cls"]
MAX_TOKENS = 256
_CHARACTERS = 64
"""No ordinary text has tokens that are longer than this on average."""


class OnnxEmbedder:
    """Runs a model over one text at a time, several texts at once.

    A quantised model scales its numbers by the largest of a batch, so that a text would get other
    vectors in other batches. One by one, no padding is computed either; it is as fast.
    """

    is_remote = False
    is_quick = False

    def __init__(
        self,
        name: str,
        files: OnnxFiles,
        max_tokens: int = MAX_TOKENS,
        pooling: Pooling = "mean",
        threads: int | None = None,
    ) -> None:
        """Load a model; it embeds this many texts at once, or one for each core.

        Raises:
            ModelError: a file is missing, damaged, or of another kind of model.
        """
        self._name = name
        title = f"embedding model '{name}'"
        self._max_tokens = max_tokens
        self._pooling = pooling
        hashes = [onnx_files.checked_hash(title, files, index) for index in range(2)]
        self._tokenizer = onnx_files.tokenizer(title, files.tokenizer, max_tokens)
        self._session = onnx_files.session(title, files.model)
        self._inputs = frozenset(each.name for each in self._session.get_inputs())
        self._output = _output(name, self._session)
        self._workers = threads or cores.available()
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self.identity = f"onnx {' '.join(hashes)} {max_tokens} {pooling}"
        self.dimensions = self._run(self._tokenizer.encode("a").ids).shape[0]

    def embed(self, texts: Sequence[str], dimensions: int | None = None) -> EmbeddedTexts:
        return self._embed(texts, self._ids_of_text, dimensions)

    def embed_tokens(
        self, tokens: Sequence[Sequence[int]], dimensions: int | None = None
    ) -> EmbeddedTexts:
        return self._embed(tokens, self._ids_of_tokens, dimensions)

    def close(self) -> None:
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=True, cancel_futures=True)

    def _embed(
        self, items: Sequence[object], ids: Callable[[Any], list[int]], dimensions: int | None
    ) -> EmbeddedTexts:
        vectors.check_dimensions(self._name, dimensions, (self.dimensions,))
        rows = np.empty((len(items), self.dimensions), dtype=np.float32)
        counts = [0] * len(items)

        def work(first: int) -> None:
            for index in range(first, len(items), self._workers):
                tokens = ids(items[index])
                rows[index] = self._run(tokens)
                counts[index] = len(tokens)

        if len(items) < 2 or self._workers < 2:
            for first in range(self._workers):
                work(first)
        else:
            list(self._pool().map(work, range(self._workers)))
        return EmbeddedTexts(vectors.to_arrow(rows), sum(counts))

    def _pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._workers, "embedding")
            return self._threads

    def _ids_of_text(self, text: str) -> list[int]:
        # The tokenizer would read all of a long text before it drops the end.
        ids: list[int] = self._tokenizer.encode(text[: self._max_tokens * _CHARACTERS]).ids
        return ids

    def _ids_of_tokens(self, tokens: Sequence[int]) -> list[int]:
        size = self._tokenizer.get_vocab_size()
        if (wrong := next((each for each in tokens if not 0 <= each < size), None)) is not None:
            raise ModelInputError(
                f"embedding model '{self._name}' has no token {wrong}; it has 0 to {size - 1}"
            )
        frame: list[int] = self._tokenizer.encode("").ids
        middle = len(frame) // 2
        return [*frame[:middle], *tokens[: self._max_tokens - len(frame)], *frame[middle:]]

    def _run(self, ids: list[int]) -> np.ndarray:
        tokens = np.array([ids], dtype=np.int64)
        given = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        (states,) = self._session.run(
            [self._output], {key: value for key, value in given.items() if key in self._inputs}
        )
        if states.ndim == 3:
            states = states[:, 0] if self._pooling == "cls" else states.mean(axis=1)
        row: np.ndarray = vectors.normalised(states)[0]
        return row


def _output(name: str, session: onnxruntime.InferenceSession) -> str:
    """Prefer a vector for each text, then one for each token."""
    outputs = {each.name: each for each in session.get_outputs()}
    for wanted in ("sentence_embedding", "last_hidden_state", "token_embeddings"):
        if wanted in outputs:
            return wanted
    for output in outputs.values():
        if len(output.shape) in (2, 3):
            return str(output.name)
    raise ModelError(
        f"embedding model '{name}': no output of the ONNX model is a vector for each text or token",
        "invalid",
    )
