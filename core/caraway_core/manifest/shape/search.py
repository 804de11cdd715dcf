"""The sections of search: of datasets, views and columns, and of embedding models."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from caraway_core.manifest.documents import unsupported
from caraway_core.manifest.shape.base import (
    Anything,
    Count,
    CountOrNone,
    Section,
    Text,
    TextList,
    Texts,
)
from caraway_core.manifest.shape.components import ModelResourcesSection
from caraway_core.manifest.texts import names
from caraway_core.manifest.values import embedder_names
from caraway_core.manifest.values.declared_rerankers import CHAT_MODEL


def _check_origin(text: str) -> str:
    unsupported.check_embedder(embedder_names.split_origin(text).provider)
    return text


def _check_reranker(text: str) -> str:
    unsupported.check_reranker(names.split_provider(text).connector, CHAT_MODEL)
    return text


def _check_name(text: str) -> str:
    if not re.fullmatch(r"[\w][\w.:/@ -]{0,127}", text):
        raise ValueError(
            f"'{text}' is not a model name; use up to 128 letters, digits and '_.:/@-'"
        )
    return text


class ChunkingSection(Section):
    enabled: bool = False
    target_chunk_size: Count | None = None
    overlap_size: CountOrNone | None = None
    trim_whitespace: bool = True


class ColumnEmbedding(Section):
    from_: Text = Field(alias="from")
    row_id: TextList = Field(default_factory=list)
    chunking: ChunkingSection | None = None


class ColumnFullTextSearch(Section):
    enabled: bool = True
    row_id: TextList = Field(default_factory=list)


class Vectors(Section):
    enabled: bool = True
    engine: Text | None = None
    params: Texts = Field(default_factory=dict)


class FullTextSearch(Section):
    enabled: bool = True
    engine: Text | None = None
    params: Texts = Field(default_factory=dict)


class EmbedderFile(Section):
    path: Text
    name: Text | None = None
    type: Text | None = None
    params: Texts = Field(default_factory=dict)


class EmbeddingSection(Section):
    from_: Annotated[Text, AfterValidator(_check_origin)] = Field(alias="from")
    name: Annotated[Text, AfterValidator(_check_name)]
    description: str | None = None
    params: Texts = Field(default_factory=dict)
    metadata: Anything = Field(default_factory=dict)
    files: list[EmbedderFile] = Field(default_factory=list)
    resources: ModelResourcesSection | None = None
    depends_on: TextList = Field([], alias="dependsOn")


class RerankerSection(Section):
    from_: Annotated[Text, AfterValidator(_check_reranker)] = Field(alias="from")
    name: Annotated[Text, AfterValidator(_check_name)]
    description: str | None = None
    params: Texts = Field(default_factory=dict)
    metadata: Anything = Field(default_factory=dict)
    files: list[EmbedderFile] = Field(default_factory=list)
    depends_on: TextList = Field([], alias="dependsOn")
