"""The top level of a manifest file."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from caraway_core.manifest.models import Model
from caraway_core.manifest.sections import (
    Anything,
    Items,
    Limits,
    Metadata,
    Section,
    Text,
    Texts,
    Written,
)
from caraway_core.manifest.shape.components import CatalogSection, Evaluation, SearchEngine
from caraway_core.manifest.shape.dataset import DatasetSection, ViewSection
from caraway_core.manifest.shape.functions import FunctionSection
from caraway_core.manifest.shape.tools import ToolSection
from caraway_core.manifest.shape.workers import WorkerSection
from caraway_core.manifest.values.declared_rerankers import DeclaredReranker
from caraway_core.manifest.values.runtime import RuntimeSettings
from caraway_core.manifest.values.search_columns import DeclaredEmbedder
from caraway_core.manifest.values.values import DeclaredStore, SnapshotStoreSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Management(Section):
    enabled: bool = False
    api_key: Written | None = None
    params: Texts = field(default_factory=dict)


Components = Items[dict[str, Any]]
"""Checked one by one, because each may come from its own file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestSection(Section):
    version: Literal["v1", "v1beta1", "v2"] = "v2"
    kind: Literal["Caraway", "Spicepod"] = "Caraway"
    name: Annotated[Written, Limits(min_length=1)]
    runtime: RuntimeSettings = field(default_factory=RuntimeSettings)
    management: Management | None = None
    snapshots: SnapshotStoreSettings | None = None
    extensions: dict[str, Anything] = field(default_factory=dict)
    secrets: Items[DeclaredStore] = (DeclaredStore("env", "env"),)
    metadata: Metadata = field(default_factory=dict)
    catalogs: Components = ()
    datasets: Components = ()
    views: Components = ()
    models: Components = ()
    embeddings: Components = ()
    rerankers: Components = ()
    search_engines: Components = ()
    tools: Components = ()
    workers: Components = ()
    functions: Components = ()
    evals: Components = ()
    dependencies: Items[Text] = ()


COMPONENTS: dict[str, type[Section]] = {
    "catalogs": CatalogSection,
    "datasets": DatasetSection,
    "views": ViewSection,
    "models": Model,
    "embeddings": DeclaredEmbedder,
    "rerankers": DeclaredReranker,
    "search_engines": SearchEngine,
    "tools": ToolSection,
    "workers": WorkerSection,
    "functions": FunctionSection,
    "evals": Evaluation,
}
"""The model of one item per list; a referenced folder holds `<singular>.yaml`."""
