"""The search settings of datasets and views, and the embedding models of the manifest."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from caraway_core.loading import registry
from caraway_core.manifest.models import ModelResources
from caraway_core.manifest.sections import (
    After,
    Count,
    CountOrNone,
    Metadata,
    Section,
    Text,
    TextList,
    Texts,
    key,
    unwritten,
)
from caraway_core.manifest.texts import origins
from caraway_core.manifest.values.model_files import ModelFiles, ModelName

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
class Chunking(Section):
    """The cutting of a long text into chunks, each with its own vector; sizes are in characters."""

    KEYS: ClassVar[Mapping[str, Any]] = {"enabled": bool}
    FIRST: ClassVar[tuple[str, ...]] = ("enabled",)

    target_size: Count = key("target_chunk_size", default=512)
    overlap_size: CountOrNone = 0
    trims_whitespace: bool = key("trim_whitespace", default=True)

    @classmethod
    def from_keys(cls, keys: dict[str, object], folder: Path) -> "Chunking | None":
        """Return the settings, or None where chunks are off."""
        return cls.of_kept(keys) if keys.get("enabled") else None


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
class EmbedderOrigin:
    """The provider of a model, and what the provider calls it; the latter may be empty."""

    provider: str
    model: str


def split_origin(text: str) -> EmbedderOrigin:
    """Split the `from` of an embedding model at its first `:`.

    Raises:
        ValueError: it names no provider, or a built-in model that does not exist.
    """
    match = re.match(r"\s*([A-Za-z][\w-]*)\s*(?::|$)", text)
    if match is None:
        raise ValueError(
            f"'{text}' names no provider; write '<provider>:<model>', for example 'builtin:minilm'"
        )
    origin = EmbedderOrigin(match[1].lower(), text[match.end() :].strip())
    if origin.provider == BUILTIN and origin.model not in BUILTIN_MODELS:
        known = ", ".join(f"{BUILTIN}:{model}" for model in BUILTIN_MODELS)
        raise ValueError(f"no built-in embedding model '{text}'; known: {known}")
    return origin


def _check_embedder(text: str) -> str:
    return origins.check(
        "embedding provider", split_origin(text).provider, registry.EMBEDDERS, text
    )


@dataclass(frozen=True, slots=True)
class DeclaredEmbedder(Section):
    """One embedding model; `params` hold secret references, not secrets.

    `provider` and `model` are the halves of its `from`; `files` are paths relative to `base_dir`.
    `is_declared` is false for a model of `BUILTIN_MODELS` that the manifest does not list.
    """

    FIRST: ClassVar[tuple[str, ...]] = ("from",)

    name: ModelName
    provider: Annotated[Text, After(_check_embedder)] = key("from")
    model: str = unwritten()
    base_dir: Path = unwritten()
    description: str | None = None
    params: Texts = field(default_factory=dict, repr=False)
    metadata: Metadata = field(default_factory=dict)
    files: ModelFiles = ()
    resources: ModelResources | None = None
    """With them, executors of a cluster answer the requests for a local model."""
    depends_on: TextList = key("dependsOn", default=())
    is_declared: bool = unwritten(default=True)

    @classmethod
    def from_keys(cls, keys: dict[str, Any], folder: Path) -> "DeclaredEmbedder":
        """Return an embedding model of a file in the folder."""
        origin = split_origin(keys.pop("provider"))
        return cls(provider=origin.provider, model=origin.model, base_dir=folder, **keys)


def builtin_embedders(base_dir: Path) -> tuple[DeclaredEmbedder, ...]:
    """Return the models that every manifest has."""
    return tuple(
        DeclaredEmbedder(f"{BUILTIN}:{model}", BUILTIN, model, base_dir, is_declared=False)
        for model in BUILTIN_MODELS
    )
