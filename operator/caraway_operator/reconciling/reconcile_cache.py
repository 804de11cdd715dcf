"""The cache of a cluster between reconciliations. Losing it costs a few requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from caraway_kube.api.kinds import Object
from caraway_operator.reconciling.writing import WriteHistory
from caraway_operator.references.referenced_objects import ReferencedObjects
from caraway_operator.scaling.autoscaling import LoadHistory


@dataclass(slots=True)
class ReconcileCache:
    """The cache of one cluster."""

    writes: WriteHistory = field(default_factory=WriteHistory)
    loads: LoadHistory = field(default_factory=LoadHistory)
    referenced: ReferencedObjects = field(default_factory=ReferencedObjects)
    manifest_text: str | None = None
    """The manifest, if it is in a ConfigMap."""
    read_for: tuple[int, str, str] = (0, "", "")
    """Generation, uid and references of the cluster that `referenced` was read for."""
    read_at: float = float("-inf")
    accepted_for: tuple[int, str] = (0, "")
    """Generation and uid of the cluster for which all referenced objects existed at one time."""
    # Any: the values that the objects were built from, and a status as JSON.
    built: tuple[tuple[Any, ...], list[Object]] = ((), [])
    """The objects that were last built, and what from."""
    status: Mapping[str, Any] | None = None
    """The status that was last written, and the version of the cluster that it was written to."""
    status_version: str = ""
