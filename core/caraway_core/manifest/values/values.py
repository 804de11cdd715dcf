"""The values of a manifest as frozen dataclasses, for the rest of the system."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from caraway_core.loading import registry
from caraway_core.manifest.models import Model
from caraway_core.manifest.sections import After, Place, Section, Text, Texts, Written, key
from caraway_core.manifest.texts import origins
from caraway_core.manifest.values.acceleration import Acceleration, TimeFormat
from caraway_core.manifest.values.declared_rerankers import DeclaredReranker
from caraway_core.manifest.values.declared_tools import DeclaredTool
from caraway_core.manifest.values.runtime import ReadyState, RuntimeSettings
from caraway_core.manifest.values.search_columns import NO_SEARCH, DeclaredEmbedder, SearchColumns
from caraway_core.manifest.values.workers import DeclaredWorker
from caraway_core.sqltext.sql_functions import SqlFunction


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """A declared column; `type` is parsed by `arrow_type`, and None means that it is inferred."""

    name: str
    type: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """One dataset as written; `params` hold secret references, not secrets.

    `source` is the `from` text, and `connector` and `path` are its parts. Relative paths are
    relative to `base_dir`, the folder of the file with the dataset. If `ready_state` is None, the
    setting of the runtime applies. `acceleration` is None if it is missing or disabled.
    """

    name: str
    source: str
    connector: str
    path: str
    base_dir: Path
    description: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    access: Literal["read", "read_write"] = "read"
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    columns: tuple[DeclaredColumn, ...] = ()
    time_column: str | None = None
    time_format: TimeFormat | None = None
    ready_state: ReadyState | None = None
    unsupported_type_action: Literal["error", "warn", "ignore", "string"] = "error"
    check_availability: Literal["auto", "disabled"] = "auto"
    replication_enabled: bool = False
    acceleration: Acceleration | None = None
    search: SearchColumns = NO_SEARCH

    @property
    def acceleration_enabled(self) -> bool:
        return self.acceleration is not None


@dataclass(frozen=True, slots=True)
class DeclaredCatalog:
    """A source catalog as written; `params` hold secret references, not secrets.

    `source` is the `from` text, and `connector` and `path` are its parts. `include` has patterns of
    `schema.table`; without any, all tables are included.
    """

    name: str
    source: str
    connector: str
    path: str
    base_dir: Path
    description: str | None = None
    include: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    access: Literal["read", "read_write", "read_write_create"] = "read"

    def includes(self, title: str) -> bool:
        """Return whether statements may name a table, given its `schema.table`."""
        return not self.include or any(fnmatchcase(title, each) for each in self.include)


VIEW = "view"
"""The connector of datasets that are accelerated views; its path is their query."""


@dataclass(frozen=True, slots=True)
class View:
    """A name for a query."""

    name: str
    sql: str
    base_dir: Path
    description: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    columns: tuple[DeclaredColumn, ...] = ()
    search: SearchColumns = NO_SEARCH


ALL_STORES = "secrets"
"""Stands for all secret stores in a reference."""


def _check_store(text: str) -> str:
    kind, _, place = text.partition(":")
    origins.check("secret store", kind, registry.SECRET_STORES, text)
    if kind == "env" and place:
        raise ValueError("the store 'env' takes no path; write 'env', or 'dotenv:<path>'")
    return text


def _check_store_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][\w-]*", text):
        raise ValueError(f"'{text}' is not a store name; use letters, digits, '_' and '-'")
    if text == ALL_STORES:
        raise ValueError("'secrets' means all stores in a reference; choose another name")
    return text


@dataclass(frozen=True, slots=True)
class DeclaredStore(Section):
    """A secret store: references use `name`, and the registry resolves `kind`.

    The path of `from: file:/path` is in `params["path"]`.
    """

    KEYS: ClassVar[Mapping[str, Any]] = {"description": str | None}
    FIRST: ClassVar[tuple[str, ...]] = ("from", "name", "description")

    name: Annotated[Written, After(_check_store_name)]
    kind: Annotated[Text, After(_check_store)] = key("from")
    params: Texts = field(default_factory=dict, repr=False)

    @classmethod
    def from_keys(cls, keys: dict[str, Any], folder: Path) -> "DeclaredStore":
        """Return a store; its path is one of its params."""
        kind, _, place = keys["kind"].partition(":")
        params = {**keys.get("params", {}), **({"path": place} if place else {})}
        return cls(keys["name"], kind, params)


@dataclass(frozen=True, slots=True)
class SnapshotStoreSettings(Section):
    """The location of snapshots of accelerated datasets: the URL of a bucket, or an absolute
    folder.

    `on_failure` applies if a dataset cannot start from its snapshot. The dataset is then loaded
    from its source, with or without a warning, or retries until it succeeds.
    """

    KEYS: ClassVar[Mapping[str, Any]] = {"enabled": bool}
    FIRST: ClassVar[tuple[str, ...]] = ("enabled",)

    location: Place = ""
    on_failure: Literal["warn", "retry", "fallback"] = key(
        "bootstrap_on_failure_behavior", default="warn"
    )
    params: Texts = field(default_factory=dict, repr=False)

    @classmethod
    def from_keys(cls, keys: dict[str, object], folder: Path) -> "SnapshotStoreSettings | None":
        """Return the place of snapshots; None where there is none, or it is off."""
        is_on = keys.get("enabled", True) and keys["location"]
        return cls.of_kept(keys) if is_on else None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest with the content of all files that it refers to.

    `path` is the manifest file, `base_dir` its folder, `files` are all files that were read, and
    `notices` lists accepted keys without effect. `embedders` are the models of `embeddings`, and
    those that need no entry there. In the SQL of datasets and views, the bodies of `functions` are
    in the place of their calls.
    """

    version: str
    kind: str
    name: str
    path: Path
    base_dir: Path
    files: tuple[Path, ...]
    datasets: tuple[Dataset, ...]
    views: tuple[View, ...]
    runtime: RuntimeSettings
    secrets: tuple[DeclaredStore, ...]
    dependencies: tuple[str, ...]
    notices: tuple[str, ...]
    snapshots: SnapshotStoreSettings | None = None
    embedders: tuple[DeclaredEmbedder, ...] = ()
    models: tuple[Model, ...] = ()
    tools: tuple[DeclaredTool, ...] = ()
    workers: tuple[DeclaredWorker, ...] = ()
    rerankers: tuple[DeclaredReranker, ...] = ()
    functions: tuple[SqlFunction, ...] = ()
    catalogs: tuple[DeclaredCatalog, ...] = ()
