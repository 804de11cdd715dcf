"""Manifests as checked, frozen values.

This package holds the shape of manifests, the reading of their files, and secret references. It
does not interpret the settings of sources, stores or models; the plug-ins do.
"""

from pathlib import Path

from caraway_core.manifest.models import Model, ModelFile, ModelResources
from caraway_core.manifest.secrets.references import SecretResolver, build_resolver
from caraway_core.manifest.texts.access_keys import split_key
from caraway_core.manifest.texts.column_types import arrow_type
from caraway_core.manifest.values.acceleration import Acceleration
from caraway_core.manifest.values.declared_rerankers import DeclaredReranker
from caraway_core.manifest.values.runtime import RuntimeSettings
from caraway_core.manifest.values.search_columns import (
    Chunking,
    DeclaredEmbedder,
    EmbeddedColumn,
    KeywordColumn,
    SearchColumns,
)
from caraway_core.manifest.values.values import (
    Dataset,
    DeclaredCatalog,
    DeclaredColumn,
    Manifest,
    View,
)

__all__ = [
    "Acceleration",
    "Chunking",
    "Dataset",
    "DeclaredCatalog",
    "DeclaredColumn",
    "DeclaredEmbedder",
    "DeclaredReranker",
    "EmbeddedColumn",
    "KeywordColumn",
    "Manifest",
    "Model",
    "ModelFile",
    "ModelResources",
    "RuntimeSettings",
    "SearchColumns",
    "SecretResolver",
    "View",
    "arrow_type",
    "build_resolver",
    "load",
    "split_key",
]


def load(path: Path, checks_params: bool = False) -> Manifest:
    """Read a manifest file, or the one in a folder, and everything it refers to.

    With `checks_params`, an unknown param is a problem of the manifest. Without it, only the
    dataset with that param fails.

    Raises:
        ManifestError: the manifest cannot be used; the error lists every problem.
    """
    # Pydantic and PyYAML take several times longer to import than all of core, and most modules
    # that import this package want the types only.
    from caraway_core.manifest import loading

    return loading.load(path, checks_params)
