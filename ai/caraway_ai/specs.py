"""The description of a model as a frozen value, from which any process can build the model."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from caraway_ai.protocols import ChatModel
from caraway_core.errors import CarawayError, ModelError
from caraway_core.loading import registry
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

    @property
    def weights(self) -> str | None:
        """The file of the section `files` that holds the weights of a local model."""
        found = [file.path for file in self.files if file.type in ("weights", None)]
        return next((path for path in found if path.endswith(".gguf")), None)

    @property
    def own_files(self) -> tuple[str, ...]:
        """The files next to the manifest that it reads, as the manifest writes them."""
        templates = tuple(file.path for file in self.files if file.type == "chat_template")
        if self.provider != "file":
            return templates
        return ((self.weights or self.model), *templates)

    def with_files(self, elsewhere: Mapping[str, Path]) -> "ModelSpec":
        """Return the spec with other paths for some of its files."""
        if not elsewhere:
            return self
        moved = {path: str(there.absolute()) for path, there in elsewhere.items()}
        files = tuple(replace(each, path=moved.get(each.path, each.path)) for each in self.files)
        model = moved.get(self.model, self.model) if self.provider == "file" else self.model
        return replace(self, model=model, files=files)

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
