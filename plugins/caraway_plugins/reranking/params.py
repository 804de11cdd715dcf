"""The params of rerankers."""

from caraway_core.loading import registry
from caraway_core.protocols.reranking import RerankerSpec
from caraway_plugins.embeddings.params import ParamReader


class RerankerParams(ParamReader):
    """The params of a reranker, checked."""

    def __init__(self, spec: RerankerSpec) -> None:
        """Take the params.

        Raises:
            ModelError: the provider does not take one of them.
        """
        declared = registry.RERANKERS.declared(spec.provider)
        super().__init__(f"reranker '{spec.name}'", spec.provider, spec.params, declared)
