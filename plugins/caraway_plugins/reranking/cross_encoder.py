"""Cross-encoders in ONNX files: a transformer reads a query and a text together and scores them."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.process import cores
from caraway_plugins import onnx_files
from caraway_plugins.onnx_files import OnnxFiles

_CHARACTERS = 64
"""No ordinary text has tokens that are longer than this on average."""
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})


class CrossEncoder:
    """Scores pairs one by one, several at once, so that a score does not depend on other texts."""

    def __init__(self, title: str, files: OnnxFiles, max_tokens: int) -> None:
        """Load a model.

        Raises:
            ModelError: a file is missing, damaged, or of another kind of model.
        """
        self._title = title
        self._characters = max_tokens * _CHARACTERS
        self._tokenizer = onnx_files.tokenizer(title, files.tokenizer, max_tokens)
        self._session = onnx_files.session(title, files.model)
        self._inputs = frozenset(each.name for each in self._session.get_inputs())
        outputs = self._session.get_outputs()
        self._output = next((o.name for o in outputs if o.name == "logits"), outputs[0].name)
        if not self._inputs <= _INPUTS:
            raise self._unusable()
        self._closed = threading.Event()
        self._threads = ThreadPoolExecutor(cores.available(), "reranking")
        try:
            self._score("a", "a")
        except BaseException:
            self.close()
            raise

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return the probability of each text to answer the query."""
        try:
            return list(self._threads.map(lambda text: self._score(query, text), texts))
        except RuntimeError as exc:  # A closed pool raises no error of its own.
            if not self._closed.is_set():
                raise
            raise ModelAwayError(f"{self._title} is being replaced; try again") from exc

    def close(self) -> None:
        """End the threads."""
        self._closed.set()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _score(self, query: str, text: str) -> float:
        pair = self._tokenizer.encode(query[: self._characters], text[: self._characters])
        given = {
            "input_ids": pair.ids,
            "attention_mask": pair.attention_mask,
            "token_type_ids": pair.type_ids,
        }
        rows = {
            name: np.array([values], np.int64)
            for name, values in given.items()
            if name in self._inputs
        }
        try:
            (logits,) = self._session.run([self._output], rows)
            values = np.asarray(logits, np.float64).reshape(-1)
        except Exception as exc:  # The classes of the runtime have no common base but this.
            raise self._unusable() from exc
        if len(values) not in (1, 2):
            raise self._unusable()
        # With two labels, the second one is "relevant".
        logit = values[-1] - (values[0] if len(values) == 2 else 0.0)
        with np.errstate(over="ignore"):
            return float(1 / (1 + np.exp(-logit)))

    def _unusable(self) -> ModelError:
        return ModelError(
            f"{self._title}: its ONNX model is no cross-encoder; it must return one score, or "
            "those of two labels, for the tokens of a query and a text",
            "invalid",
        )
