"""What is kept of a cluster between two looks; losing it costs a few requests, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from caraway_operator.kube.kinds import Object
from caraway_operator.scaling.autoscaling import History
from caraway_operator.sources import Sources
from caraway_operator.writing import Memory


@dataclass(slots=True)
class Remembered:
    """One cluster. Any: keys of what was built, and a status as JSON has it."""

    memory: Memory = field(default_factory=Memory)
    history: History = field(default_factory=History)
    sources: Sources = field(default_factory=Sources)
    text: str | None = None
    """The manifest, where a ConfigMap holds it."""
    of: tuple[int, str] = (0, "")
    read_at: float = float("-inf")
    """Of which spec the sources are, and when they were read."""
    built: tuple[tuple[Any, ...], list[Object]] = ((), [])
    status: Mapping[str, Any] | None = None
    at_version: str = ""
    """What was said last, and of which version of the cluster."""
