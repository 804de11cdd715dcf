"""The top level of a manifest file."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from caraway_core.manifest.documents import unsupported
from caraway_core.manifest.shape.base import Anything, Section, Text, Texts, Written
from caraway_core.manifest.shape.components import (
    CatalogSection,
    Evaluation,
    ModelSection,
    SearchEngine,
)
from caraway_core.manifest.shape.dataset import DatasetSection, ViewSection
from caraway_core.manifest.shape.functions import FunctionSection
from caraway_core.manifest.shape.runtime import RuntimeSection, checked_location
from caraway_core.manifest.shape.search import EmbeddingSection, RerankerSection
from caraway_core.manifest.shape.tools import ToolSection
from caraway_core.manifest.shape.workers import WorkerSection

ALL_STORES = "secrets"


def _check_store(text: str) -> str:
    kind, _, place = text.partition(":")
    unsupported.check_store(kind)
    if kind == "env" and place:
        raise ValueError("the store 'env' takes no path; write 'env', or 'dotenv:<path>'")
    return text


def _check_store_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][\w-]*", text):
        raise ValueError(f"'{text}' is not a store name; use letters, digits, '_' and '-'")
    if text == ALL_STORES:
        raise ValueError("'secrets' means all stores in a reference; choose another name")
    return text


class SecretStoreSection(Section):
    from_: Annotated[Text, AfterValidator(_check_store)] = Field(alias="from")
    name: Annotated[Written, AfterValidator(_check_store_name)]
    description: str | None = None
    params: Texts = Field(default_factory=dict)


class Management(Section):
    enabled: bool = False
    api_key: Written | None = None
    params: Texts = Field(default_factory=dict)


class SnapshotsSection(Section):
    enabled: bool = True
    location: Annotated[Text, AfterValidator(checked_location)] | None = None
    bootstrap_on_failure_behavior: Literal["warn", "retry", "fallback"] = "warn"
    params: Texts = Field(default_factory=dict)


Components = list[dict[str, Any]]
"""Checked one by one, because each may come from its own file."""


class ManifestSection(Section):
    version: Literal["v1", "v1beta1", "v2"] = "v2"
    kind: Literal["Caraway", "Spicepod"] = "Caraway"
    name: Annotated[Written, Field(min_length=1)]
    runtime: RuntimeSection | None = None
    management: Management | None = None
    snapshots: SnapshotsSection | None = None
    extensions: dict[str, Anything] = Field(default_factory=dict)
    secrets: list[SecretStoreSection] | None = None
    metadata: Anything = Field(default_factory=dict)
    catalogs: Components = Field(default_factory=list)
    datasets: Components = Field(default_factory=list)
    views: Components = Field(default_factory=list)
    models: Components = Field(default_factory=list)
    embeddings: Components = Field(default_factory=list)
    rerankers: Components = Field(default_factory=list)
    search_engines: Components = Field(default_factory=list)
    tools: Components = Field(default_factory=list)
    workers: Components = Field(default_factory=list)
    functions: Components = Field(default_factory=list)
    evals: Components = Field(default_factory=list)
    dependencies: list[Text] = Field(default_factory=list)


COMPONENTS: dict[str, type[Section]] = {
    "catalogs": CatalogSection,
    "datasets": DatasetSection,
    "views": ViewSection,
    "models": ModelSection,
    "embeddings": EmbeddingSection,
    "rerankers": RerankerSection,
    "search_engines": SearchEngine,
    "tools": ToolSection,
    "workers": WorkerSection,
    "functions": FunctionSection,
    "evals": Evaluation,
}
"""The model of one item per list; a referenced folder holds `<singular>.yaml`."""
