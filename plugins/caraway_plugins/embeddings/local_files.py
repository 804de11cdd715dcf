"""Models in a folder on this machine: `model.onnx` and `tokenizer.json`."""

from collections.abc import Sequence
from pathlib import Path

from caraway_core.errors import ModelError
from caraway_core.protocols.embedding import Embedder, EmbedderSpec
from caraway_plugins.embeddings.params import EmbedderParams

MODEL_NAMES = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx", "model_quantized.onnx")
TOKENIZER = "tokenizer.json"
POOLINGS = ("mean", "cls")
MOST_TOKENS = 32_768


def build(spec: EmbedderSpec) -> Embedder:
    """Load the model of a folder, or of the files that are listed.

    Raises:
        ModelError: a file is missing or unusable.
    """
    params = EmbedderParams(spec)
    return load(spec, params, *found(params.title, spec.model, spec.base_dir, spec.files))


def found(title: str, path: str, base_dir: Path, files: Sequence[str]) -> tuple[Path, Path]:
    """Return the ONNX file and the tokenizer of a folder, or those that are listed.

    Raises:
        ModelError: there is no ONNX file.
    """
    listed = [base_dir / file for file in files]
    place = base_dir / path.removeprefix("//") if path else base_dir
    model = next((file for file in listed if file.suffix == ".onnx"), None) or _model(title, place)
    tokenizer = next((file for file in listed if file.name == TOKENIZER), None)
    return model, tokenizer or _beside(model)


def load(spec: EmbedderSpec, params: EmbedderParams, model: Path, tokenizer: Path) -> Embedder:
    """Load a model with the params that every ONNX model takes.

    Raises:
        ModelError: a file is missing or unusable, or a param is wrong.
    """
    from caraway_plugins.embeddings.onnx_model import MAX_TOKENS, OnnxEmbedder, Pooling
    from caraway_plugins.onnx_files import OnnxFiles

    max_tokens = params.count("max_tokens", MAX_TOKENS, MOST_TOKENS)
    pooling: Pooling = "cls" if params.one_of("pooling", POOLINGS) == "cls" else "mean"
    files = OnnxFiles(model, tokenizer)
    return OnnxEmbedder(spec.name, files, max_tokens, pooling, spec.threads)


def _model(title: str, place: Path) -> Path:
    if place.is_file():
        return place
    for name in MODEL_NAMES:
        if (place / name).is_file():
            return place / name
    raise ModelError(
        f"{title}: '{place}' is no ONNX file and no folder with "
        f"{MODEL_NAMES[0]}; check the path on every machine that loads the model",
        "not_found",
    )


def _beside(model: Path) -> Path:
    """Return the tokenizer in the folder of the model, or in the one above."""
    above = model.parent.parent / TOKENIZER
    return above if model.parent.name == "onnx" and above.is_file() else model.parent / TOKENIZER
