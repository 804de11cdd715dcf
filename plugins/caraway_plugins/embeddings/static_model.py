"""Static word vectors: the vector of a text is the mean of those of its tokens."""

import importlib.util
import json
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from caraway_core.errors import ModelError, ModelInputError
from caraway_core.protocols.embedding import EmbeddedTexts
from caraway_plugins.embeddings import vectors

_PACKAGE = "wordllama"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_DIMENSIONS = (64, 128, 256)
"""The model was trained so that the first numbers of a vector are a vector, too."""


class StaticEmbedder:
    """Reads the files of the package, whose own loader looks for one of them in a wrong folder
    and sets up logging when it is imported."""

    dimensions = _DIMENSIONS[-1]
    is_remote = False
    is_quick = True

    def __init__(self, name: str) -> None:
        """Load the vectors.

        Raises:
            ModelError: the package is not installed, or has other files.
        """
        spec = importlib.util.find_spec(_PACKAGE)
        if spec is None or spec.origin is None:
            raise ModelError(
                f"embedding model '{name}' needs the package '{_PACKAGE}', which is not "
                "installed; install it with: pip install 'caraway[wordllama]'"
            )
        folder = Path(spec.origin).parent
        self._name = name
        try:
            self._rows = _tensor(folder / _WEIGHTS)
            self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        except Exception as exc:  # The tokenizer raises no class of its own.
            raise ModelError(
                f"embedding model '{name}': the files of '{_PACKAGE}' cannot be read: {exc}; "
                "install version 0.4.0.post1 or newer"
            ) from exc
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.identity = f"wordllama l2_supercat {self.dimensions}"

    def embed(self, texts: Sequence[str], dimensions: int | None = None) -> EmbeddedTexts:
        tokens = [self._tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        return self.embed_tokens(tokens, dimensions)

    def embed_tokens(
        self, tokens: Sequence[Sequence[int]], dimensions: int | None = None
    ) -> EmbeddedTexts:
        width = vectors.check_dimensions(self._name, dimensions, _DIMENSIONS)
        rows = np.zeros((len(tokens), width), dtype=np.float32)
        for index, ids in enumerate(tokens):
            if ids:
                rows[index] = self._mean(ids)[:width]
        count = sum(map(len, tokens))
        return EmbeddedTexts(vectors.to_arrow(vectors.normalised(rows)), count)

    def close(self) -> None:
        pass

    def _mean(self, ids: Sequence[int]) -> np.ndarray:
        if min(ids) < 0 or max(ids) >= len(self._rows):
            raise ModelInputError(
                f"embedding model '{self._name}' has the tokens 0 to {len(self._rows) - 1}"
            )
        mean: np.ndarray = self._rows[np.asarray(ids)].mean(axis=0, dtype=np.float32)
        return mean


def _tensor(path: Path) -> np.ndarray:
    """Read the only tensor of a safetensors file: a length, a header in JSON, and the numbers."""
    with path.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        header = json.loads(stream.read(length))
        (tensor,) = (each for name, each in header.items() if name != "__metadata__")
        kinds = {"F16": np.float16, "F32": np.float32}
        rows = np.frombuffer(stream.read(), dtype=kinds[tensor["dtype"]])
    return rows.reshape(tensor["shape"]).astype(np.float32)
