"""Collects the rerankers of a manifest, and checks the models that they name."""

from collections.abc import Collection, Iterator

from caraway_core.errors import Problem
from caraway_core.loading import registry
from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.values.declared_rerankers import CHAT_MODEL, DeclaredReranker


class RerankerReferences:
    """The rerankers that were found so far, and the models that they ask."""

    def __init__(self) -> None:
        self._found: dict[str, DeclaredReranker] = {}
        self._places: dict[str, str] = {}
        self._documents: dict[str, Document] = {}

    @property
    def rerankers(self) -> tuple[DeclaredReranker, ...]:
        """All that were found."""
        return tuple(self._found.values())

    def add(self, reranker: DeclaredReranker, found: Document) -> Iterator[Problem]:
        """Take a reranker; yield a problem if its name is taken."""
        if (name := reranker.name) in self._found:
            message = f"the name '{name}' is taken: {self._places[name]} declares it"
            yield found.problem(("name",), message)
            return
        self._found[name] = reranker
        self._places[name] = f"{found.path}:{found.line(('name',))}"
        self._documents[name] = found

    def problems(self, models: Collection[str]) -> Iterator[Problem]:
        """Yield a problem for each reranker that asks a model that is not declared."""
        for each in self._found.values():
            if each.provider == CHAT_MODEL and each.model not in models:
                message = registry.unknown("model", each.model, models)
                yield self._documents[each.name].problem(("from",), message)
