"""Cross-encoders in ONNX files of this machine or of a hub, and the built-in reranker."""

from collections.abc import Sequence
from pathlib import Path

from caraway_core.errors import ModelError
from caraway_core.protocols.reranking import LoadedReranker, RerankerSpec
from caraway_plugins.embeddings import huggingface, local_files
from caraway_plugins.reranking.params import RerankerParams

MAX_TOKENS = 512
LEXICAL = "lexical"


def build_file(spec: RerankerSpec) -> LoadedReranker:
    """Load the model of a folder, or of the files that are listed.

    Raises:
        ModelError: a file is missing or unusable, or a param is wrong.
    """
    params = RerankerParams(spec)
    return _load(params, *local_files.found(params.title, spec.model, spec.base_dir, spec.files))


def build_huggingface(spec: RerankerSpec) -> LoadedReranker:
    """Download the model of a hub, unless it is cached, and load it.

    Raises:
        ModelError: there is no such model, access is denied, or the hub does not respond.
    """
    params = RerankerParams(spec)
    return _load(params, *huggingface.found(spec.model, params))


def build_builtin(spec: RerankerSpec) -> LoadedReranker:
    """Return the reranker that compares words.

    Raises:
        ModelError: there is no such one.
    """
    params = RerankerParams(spec)
    if spec.model != LEXICAL:
        raise ModelError(
            f"{params.title}: no built-in '{spec.model}'; known: {LEXICAL}", "not_found"
        )
    return _WordReranker()


def _load(params: RerankerParams, model: Path, tokenizer: Path) -> LoadedReranker:
    from caraway_plugins.onnx_files import OnnxFiles
    from caraway_plugins.reranking.cross_encoder import CrossEncoder

    max_tokens = params.count("max_tokens", MAX_TOKENS, local_files.MOST_TOKENS)
    return CrossEncoder(params.title, OnnxFiles(model, tokenizer), max_tokens)


class _WordReranker:
    """The built-in reranker under a name of the manifest: it counts words in common."""

    def __init__(self) -> None:
        from caraway_search.ranking.lexical import LexicalReranker

        self._lexical = LexicalReranker()

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return self._lexical.scores(query, texts)

    def close(self) -> None:
        """Nothing is held."""
