"""The values of the section `models`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

ModelFileType = Literal[
    "weights", "config", "tokenizer", "tokenizer_config", "generation_config", "chat_template"
]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of a local model."""

    path: str
    name: str | None = None
    type: ModelFileType | None = None


@dataclass(frozen=True, slots=True)
class ModelResources:
    """The resources of each copy of a local model; None means that the runtime decides."""

    cpu: int | None = None
    memory_bytes: int | None = None
    gpu: int = 0
    copies: int = 1
    """The number of executors of a cluster with a copy."""


@dataclass(frozen=True, slots=True)
class Model:
    """One language model as written; `params` hold secret references, not secrets.

    `source` is the `from` text, and `provider` and `path` are its parts. Relative paths are
    relative to `base_dir`, the folder of the file with the model. `datasets` limits what its tools
    may read; empty means all.
    """

    name: str
    source: str
    provider: str
    path: str
    base_dir: Path
    description: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: tuple[ModelFile, ...] = ()
    datasets: tuple[str, ...] = ()
    resources: ModelResources | None = None
    """With them, executors of a cluster host a local model; else the scheduler runs it."""
