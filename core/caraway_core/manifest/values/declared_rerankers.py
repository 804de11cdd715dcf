"""The values of the section `rerankers`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CHAT_MODEL = "model"
"""The provider of rerankers that ask a model of `models`."""


@dataclass(frozen=True, slots=True)
class DeclaredReranker:
    """One reranker as written; `params` hold secret references, not secrets.

    `provider` and `model` are the halves of its `from`; `files` are paths relative to `base_dir`.
    """

    name: str
    provider: str
    model: str
    base_dir: Path
    description: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: tuple[str, ...] = ()
