"""The description of a model as a frozen value, from which any process can build the model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from caraway_ai.protocols import ChatModel
from caraway_core import registry
from caraway_core.errors import CarawayError, ModelError
from caraway_core.manifest.models import ModelFile, ModelResources


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One entry of `models` in the manifest; it crosses to executors instead of a client.

    `provider` and `model` are the two halves of `from`. Secrets are filled in, so `params` are
    never printed. Relative paths are relative to `base_dir`, and files that are fetched or made go
    to `cache_dir`.
    """

    name: str
    provider: str
    model: str
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: tuple[ModelFile, ...] = ()
    resources: ModelResources = field(default_factory=ModelResources)
    base_dir: Path = field(default_factory=Path)
    cache_dir: Path = field(default_factory=Path)
    gpus: tuple[int, ...] | None = None
    """The numbers of the GPUs that it may use; None means all."""

    def build(self) -> ChatModel:
        """Build the model: import its provider and read its params. Nothing is sent yet.

        This may block, because packages of providers are slow to import.

        Raises:
            ModelError: the provider is not installed, or a param is wrong.
        """
        try:
            factory = registry.MODEL_PROVIDERS.load(self.provider)
        except CarawayError as exc:
            raise ModelError(f"model '{self.name}': {exc.message}", "invalid") from exc
        return cast(ChatModel, factory(self))
