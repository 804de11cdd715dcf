"""The search settings of a dataset or view as plain frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from caraway_core.manifest.models import ModelResources

Metric = Literal["cosine", "dot", "l2"]

BUILTIN = "builtin"
BUILTIN_MODELS = ("minilm", "wordllama")
"""Embedding models that need no entry in `embeddings`: `builtin:minilm` names itself."""

LANGUAGES = frozenset(
    "none arabic armenian basque catalan czech danish dutch english esperanto estonian finnish "
    "french german greek hindi hungarian indonesian irish italian lithuanian nepali norwegian "
    "persian polish portuguese romanian russian serbian sesotho spanish swedish tamil turkish "
    "yiddish".split()
)
"""Languages whose words can be reduced to stems; `none` keeps words as they are."""


@dataclass(frozen=True, slots=True)
class Chunking:
    """The cutting of a long text into chunks, each with its own vector; sizes are in characters."""

    target_size: int = 512
    overlap_size: int = 0
    trims_whitespace: bool = True


@dataclass(frozen=True, slots=True)
class EmbeddedColumn:
    """A text column with vectors. `embedder` names an entry of `Manifest.embedders`.

    `row_id` are the columns that identify a row; without any, the primary key does. Without
    `chunking` a row has one vector.
    """

    column: str
    embedder: str
    row_id: tuple[str, ...] = ()
    chunking: Chunking | None = None

    @property
    def vector_column(self) -> str:
        """The generated column with the vector of a row, or with a list of one for each chunk."""
        return f"{self.column}_embedding"

    @property
    def offset_column(self) -> str:
        """The generated column with the start and end of each chunk; only with `chunking`."""
        return f"{self.column}_offset"


@dataclass(frozen=True, slots=True)
class KeywordColumn:
    """A text column that is searched for words."""

    column: str
    row_id: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VectorSettings:
    """The settings of a search of vectors. Without an index every search compares all of them.

    `recall` is the part of the true nearest rows that an index must find; 1 means all.
    """

    is_indexed: bool = True
    metric: Metric = "cosine"
    recall: float = 0.98


@dataclass(frozen=True, slots=True)
class KeywordSettings:
    """The settings of a search of words. `language` is one of `LANGUAGES`."""

    language: str = "english"


@dataclass(frozen=True, slots=True)
class SearchColumns:
    """The columns of a dataset or view that can be searched; empty where none can."""

    embedded: tuple[EmbeddedColumn, ...] = ()
    keywords: tuple[KeywordColumn, ...] = ()
    vectors: VectorSettings = VectorSettings()
    keyword_settings: KeywordSettings = KeywordSettings()

    def __bool__(self) -> bool:
        return bool(self.embedded or self.keywords)


NO_SEARCH = SearchColumns()


@dataclass(frozen=True, slots=True)
class DeclaredEmbedder:
    """One embedding model; `params` hold secret references, not secrets.

    `provider` and `model` are the halves of its `from`; `files` are paths relative to `base_dir`.
    `is_declared` is false for a model of `BUILTIN_MODELS` that the manifest does not list.
    """

    name: str
    provider: str
    model: str
    base_dir: Path
    description: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    is_declared: bool = True
    resources: ModelResources | None = None
    """With them, executors of a cluster answer the requests for a local model."""


def builtin_embedders(base_dir: Path) -> tuple[DeclaredEmbedder, ...]:
    """Return the models that every manifest has."""
    return tuple(
        DeclaredEmbedder(f"{BUILTIN}:{model}", BUILTIN, model, base_dir, is_declared=False)
        for model in BUILTIN_MODELS
    )
