"""Collects what names embedding models, models and tools, and checks that these exist."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from caraway_core.errors import Problem
from caraway_core.loading import registry
from caraway_core.manifest.documents.document import Document, Location
from caraway_core.manifest.values.declared_rerankers import CHAT_MODEL, DeclaredReranker
from caraway_core.manifest.values.declared_tools import BUILTIN_TOOLS, OTHER_NAMES, DeclaredTool
from caraway_core.manifest.values.search_columns import (
    DeclaredEmbedder,
    SearchColumns,
    builtin_embedders,
)
from caraway_core.sqltext.sql_functions import GROUP, SqlFunction


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


_MODES = frozenset({"", "all", "disabled", "none", "search_registry"})
_GROUPS = ("auto", "builtin", "manifest", "memory", GROUP)
_OF_SERVER = "__"
"""Separates the name of a tool from that of its MCP server."""


class ToolReferences:
    """The models whose params name tools."""

    def __init__(self) -> None:
        self._models: list[Document] = []

    def add(self, model: Document) -> None:
        """Add a model of the manifest."""
        self._models.append(model)

    def problems(
        self, tools: Mapping[str, DeclaredTool], functions: Collection[SqlFunction]
    ) -> Iterator[Problem]:
        """Yield the names that are neither a tool nor a group of tools."""
        known = {
            *_GROUPS,
            *BUILTIN_TOOLS,
            *OTHER_NAMES,
            *tools,
            *(group for tool in tools.values() for group in tool.groups),
            *(each.name for each in functions if each.as_tool),
        }
        servers = {name for name, tool in tools.items() if tool.kind == "mcp"}
        for model in self._models:
            for name in _names(model):
                # Only a connected server says which tools it has.
                is_of_server = _OF_SERVER in name and name.rpartition(_OF_SERVER)[2] in servers
                if name not in known and not is_of_server:
                    message = registry.unknown("tool or group of tools", name[:100], known)
                    yield model.problem(("params", "tools"), message)


def _names(model: Document) -> Iterator[str]:
    params = model.value.get("params")
    written = params.get("tools") if isinstance(params, dict) else None
    if isinstance(written, str) and written.strip().lower() not in _MODES:
        yield from filter(None, map(str.strip, written.split(",")))
