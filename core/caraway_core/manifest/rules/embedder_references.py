"""Collects the embedding models of a manifest, and checks the columns that name them."""

from collections.abc import Iterator
from pathlib import Path

from caraway_core.errors import Problem
from caraway_core.loading import registry
from caraway_core.manifest.documents.document import Document, Location
from caraway_core.manifest.values.search_columns import (
    DeclaredEmbedder,
    SearchColumns,
    builtin_embedders,
)


class EmbedderReferences:
    """The models that were found so far, and the columns that want one."""

    def __init__(self) -> None:
        self._found: dict[str, DeclaredEmbedder] = {}
        self._places: dict[str, str] = {}
        self._wanted: list[tuple[str, Document, Location]] = []

    def add(self, embedder: DeclaredEmbedder, found: Document) -> Iterator[Problem]:
        """Take a model; yield a problem if its name is taken."""
        if (name := embedder.name) in self._found:
            message = f"the name '{name}' is taken: {self._places[name]} declares it"
            yield found.problem(("name",), message)
            return
        self._found[name] = embedder
        self._places[name] = f"{found.path}:{found.line(('name',))}"

    def want(self, search: SearchColumns, found: Document) -> None:
        """Remember the models that the columns of a dataset or view name."""
        names = {each.column: each.embedder for each in search.embedded}
        for index, column in enumerate(found.value.get("columns") or ()):
            if (name := names.get(str(column.get("name")))) is not None:
                at = ("columns", index, "embeddings", 0, "from")
                self._wanted.append((name, found, at))

    def embedders(self, base_dir: Path) -> tuple[DeclaredEmbedder, ...]:
        """Return the models of the manifest, and after them those that it does not list."""
        builtin = (each for each in builtin_embedders(base_dir) if each.name not in self._found)
        return (*self._found.values(), *builtin)

    def problems(self, base_dir: Path) -> Iterator[Problem]:
        """Yield a problem for each column that names no model."""
        names = [each.name for each in self.embedders(base_dir)]
        for name, document, at in self._wanted:
            if name not in names:
                yield document.problem(at, registry.unknown("embedding model", name, names))
