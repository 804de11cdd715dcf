"""ONNX files with a tokenizer beside them: read, checked and opened. `title` begins each error."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import onnxruntime
from tokenizers import Tokenizer

from caraway_core.errors import ModelError

_BLOCK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class OnnxFiles:
    """A model and its tokenizer. `sha256` are the known hashes of the two, if there are any."""

    model: Path
    tokenizer: Path
    sha256: tuple[str, str] | None = None


def checked_hash(title: str, files: OnnxFiles, index: int) -> str:
    """Return the hash of the model (0) or of its tokenizer (1).

    Raises:
        ModelError: it cannot be read, or is not the known one.
    """
    path = (files.model, files.tokenizer)[index]
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while block := stream.read(_BLOCK_BYTES):
                digest.update(block)
    except OSError as exc:
        raise ModelError(
            f"{title}: the file '{path}' cannot be read: {exc.strerror}",
            "not_found",
        ) from exc
    found = digest.hexdigest()
    if files.sha256 is not None and found != files.sha256[index]:
        raise ModelError(
            f"{title}: the file '{path}' is not the one that was published "
            f"(sha256 {found}); install its package again"
        )
    return found


def tokenizer(title: str, path: Path, max_tokens: int) -> Tokenizer:
    """Open a tokenizer that cuts texts.

    Raises:
        ModelError: it is none.
    """
    try:
        found = Tokenizer.from_file(str(path))
    except Exception as exc:  # The package raises no class of its own.
        raise ModelError(f"{title}: '{path}' is not a tokenizer.json: {exc}", "invalid") from exc
    found.no_padding()
    found.enable_truncation(max_tokens)
    return found


def session(title: str, path: Path) -> onnxruntime.InferenceSession:
    """Open a model that runs in one thread.

    Raises:
        ModelError: it is none.
    """
    options = onnxruntime.SessionOptions()
    # Texts are run in parallel; threads inside of one would wait for each other.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as exc:  # Its classes have no common base but this.
        raise ModelError(
            f"{title}: '{path}' is not a usable ONNX model: {type(exc).__name__}; export it again",
            "invalid",
        ) from exc
