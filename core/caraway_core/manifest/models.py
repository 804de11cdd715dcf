"""The values of the section `models`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from caraway_core.manifest.sections import (
    After,
    Count,
    CountOrNone,
    Items,
    Metadata,
    Section,
    Size,
    Text,
    TextList,
    Texts,
    Written,
    key,
    unwritten,
)
from caraway_core.manifest.texts import names, origins

ModelFileType = Literal[
    "weights", "config", "tokenizer", "tokenizer_config", "generation_config", "chat_template"
]


@dataclass(frozen=True, slots=True)
class ModelFile(Section):
    """A file of a local model."""

    path: Text
    name: str | None = None
    type: ModelFileType | None = None


@dataclass(frozen=True, slots=True)
class ModelResources(Section):
    """The resources of each copy of a local model; None means that the runtime decides."""

    cpu: Count | None = None
    memory_bytes: Size | None = key("memory", default=None)
    gpu: CountOrNone = 0
    copies: Count = 1
    """The number of executors of a cluster with a copy."""


@dataclass(frozen=True, slots=True)
class Model(Section):
    """One language model as written; `params` hold secret references, not secrets.

    `source` is the `from` text, and `provider` and `path` are its parts. Relative paths are
    relative to `base_dir`, the folder of the file with the model. `datasets` limits what its tools
    may read; empty means all.
    """

    KEYS: ClassVar[Mapping[str, object]] = {"dependsOn": TextList}
    FIRST: ClassVar[tuple[str, ...]] = ("from",)

    name: Annotated[Written, After(names.component)]
    source: Annotated[Text, After(origins.check_provider)] = key("from")
    provider: str = unwritten()
    path: str = unwritten()
    base_dir: Path = unwritten()
    description: str | None = None
    metadata: Metadata = field(default_factory=dict)
    params: Texts = field(default_factory=dict, repr=False)
    files: Items[ModelFile] = ()
    datasets: Annotated[TextList, After(names.canonical_all)] = ()
    resources: ModelResources | None = None
    """With them, executors of a cluster host a local model; else the scheduler runs it."""

    @classmethod
    def from_keys(cls, keys: dict[str, Any], folder: Path) -> "Model":
        """Return a model of a file in the folder."""
        origin = names.split_provider(keys["source"])
        return cls.of_kept(keys, provider=origin.connector, path=origin.path, base_dir=folder)
