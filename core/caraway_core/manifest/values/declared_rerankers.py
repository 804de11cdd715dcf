"""The values of the section `rerankers`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from caraway_core.loading import registry
from caraway_core.manifest.sections import (
    After,
    Metadata,
    Section,
    Text,
    TextList,
    Texts,
    key,
    unwritten,
)
from caraway_core.manifest.texts import names, origins
from caraway_core.manifest.values.model_files import ModelFiles, ModelName

CHAT_MODEL = "model"
"""The provider of rerankers that ask a model of `models`."""


def _check_reranker(text: str) -> str:
    known = {*registry.RERANKERS, CHAT_MODEL}
    return origins.check("reranker provider", names.split_provider(text).connector, known, text)


@dataclass(frozen=True, slots=True)
class DeclaredReranker(Section):
    """One reranker as written; `params` hold secret references, not secrets.

    `provider` and `model` are the halves of its `from`; `files` are paths relative to `base_dir`.
    """

    KEYS: ClassVar[Mapping[str, object]] = {"dependsOn": TextList}
    FIRST: ClassVar[tuple[str, ...]] = ("from",)

    name: ModelName
    provider: Annotated[Text, After(_check_reranker)] = key("from")
    model: str = unwritten()
    base_dir: Path = unwritten()
    description: str | None = None
    params: Texts = field(default_factory=dict, repr=False)
    metadata: Metadata = field(default_factory=dict)
    files: ModelFiles = ()

    @classmethod
    def from_keys(cls, keys: dict[str, Any], folder: Path) -> "DeclaredReranker":
        """Return a reranker of a file in the folder."""
        origin = names.split_provider(keys.pop("provider"))
        return cls.of_kept(keys, provider=origin.connector, model=origin.path, base_dir=folder)
