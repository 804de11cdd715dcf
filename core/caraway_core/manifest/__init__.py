"""What a manifest file says, as checked and frozen values.

Here live the shape of manifests, the reading of their files, and references to secrets. What a
source, a store or a model does with its settings does not: that is up to the plug-in.
"""

from pathlib import Path

from caraway_core.manifest.acceleration import Acceleration
from caraway_core.manifest.access_keys import split_key
from caraway_core.manifest.column_types import arrow_type
from caraway_core.manifest.references import SecretResolver, build_resolver
from caraway_core.manifest.runtime import RuntimeSettings
from caraway_core.manifest.values import Dataset, DeclaredColumn, Manifest, View

__all__ = [
    "Acceleration",
    "Dataset",
    "DeclaredColumn",
    "Manifest",
    "RuntimeSettings",
    "SecretResolver",
    "View",
    "arrow_type",
    "build_resolver",
    "load",
    "split_key",
]


def load(path: Path, checks_params: bool = False) -> Manifest:
    """Read a manifest file, or the one in a folder, and everything it refers to.

    With `checks_params` a param that nobody takes is a problem of the manifest. Without, it is one
    of its dataset alone.

    Raises:
        ManifestError: it cannot be used; the error holds every problem.
    """
    # Pydantic and PyYAML take several times longer to import than all of core, and most modules
    # that import this package want the types only.
    from caraway_core.manifest import loading

    return loading.load(path, checks_params)
