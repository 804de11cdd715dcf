"""Loads a manifest and everything it refers to, and collects all problems."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from caraway_core.errors import ManifestError, Problem
from caraway_core.manifest import checking, notices
from caraway_core.manifest.building import building
from caraway_core.manifest.documents import aliases, document, unsupported
from caraway_core.manifest.documents.document import Document, Location
from caraway_core.manifest.models import Model
from caraway_core.manifest.rules import (
    function_rules,
    param_rules,
    rules,
    search_rules,
    tool_rules,
    worker_rules,
)
from caraway_core.manifest.rules.function_references import FunctionReferences
from caraway_core.manifest.rules.references import (
    EmbedderReferences,
    RerankerReferences,
    ToolReferences,
)
from caraway_core.manifest.shape import components, top
from caraway_core.manifest.shape import dataset as shapes
from caraway_core.manifest.shape import functions as function_shapes
from caraway_core.manifest.shape import tools as tool_shapes
from caraway_core.manifest.shape import workers as worker_shapes
from caraway_core.manifest.texts import names, places
from caraway_core.manifest.values.declared_rerankers import DeclaredReranker
from caraway_core.manifest.values.declared_tools import DeclaredTool
from caraway_core.manifest.values.search_columns import DeclaredEmbedder
from caraway_core.manifest.values.values import VIEW, Dataset, DeclaredCatalog, Manifest, View

_Table = TypeVar("_Table", Dataset, View)

_RULES: Mapping[str, Callable[[Document], Iterator[Problem]]] = {
    "catalogs": rules.catalog,
    "datasets": rules.dataset,
    "views": rules.view,
    "embeddings": search_rules.embedding,
    "tools": tool_rules.tool,
    "workers": worker_rules.worker,
    "functions": function_rules.function,
}
_REFUSALS = {
    "catalogs": unsupported.IN_CATALOG,
    "datasets": unsupported.IN_DATASET,
    "views": unsupported.IN_VIEW,
    "embeddings": (),
    "tools": (),
    "workers": (),
    "functions": (),
}


def load(path: Path, checks_params: bool = False) -> Manifest:
    """Read a manifest file, or the one in a folder, and everything it refers to.

    With `checks_params` a param that nobody takes is a problem of the manifest. Without, it is one
    of its dataset alone.

    Raises:
        ManifestError: it cannot be used; the error holds every problem.
    """
    try:
        file = places.manifest_file(path)
    except ValueError as exc:
        raise ManifestError([Problem(str(path), 0, "", str(exc))]) from exc
    return _Loading(file, checks_params=checks_params).manifest()


def load_alone(content: Document) -> Manifest:
    """Check a manifest that was read already, and that refers to no other file.

    Nothing is read: its author may not be allowed to see the files of this process.

    Raises:
        ManifestError: it cannot be used; the error holds every problem.
    """
    if references := list(rules.references(content)):
        raise ManifestError(references)
    return _Loading(content.path, content, checks_params=True).manifest()


class _Loading:
    """The state of one load: the documents that were read, and their problems."""

    def __init__(self, file: Path, content: Document | None = None, *, checks_params: bool) -> None:
        self._file = file
        self._checks_params = checks_params
        self._given = content
        self._problems: list[Problem] = []
        self._notices: list[str] = []
        self._files: dict[Path, None] = {}
        self._datasets: list[Dataset] = []
        self._views: list[View] = []
        self._embedders = EmbedderReferences()
        self._rerankers = RerankerReferences()
        self._models: list[Model] = []
        self._catalogs: list[DeclaredCatalog] = []
        self._declared: dict[str, str] = {}
        self._declared_catalogs: dict[str, str] = {}
        self._declared_models: dict[str, str] = {}
        self._finished: set[Path] = set()
        self._tools: dict[str, DeclaredTool] = {}
        self._tool_references = ToolReferences()
        self._workers = worker_rules.WorkerReferences()
        self._functions = FunctionReferences()
        self._texts: dict[str, Document] = {}

    def manifest(self) -> Manifest:
        root = self._load(self._file, trail=())
        base_dir = self._file.parent
        self._problems += self._embedders.problems(base_dir)
        self._problems += self._workers.problems(self._declared_models)
        self._problems += self._rerankers.problems([model.name for model in self._models])
        if root is not None:
            self._functions.is_on = root.runtime.functions.enabled
        self._problems += self._functions.problems(self._declared, self._tools)
        if self._checks_params:
            functions = self._functions.functions
            self._problems += self._tool_references.problems(self._tools, functions)
        views = [self._with_calls(each) for each in self._views]
        datasets = [self._with_calls(each) for each in self._datasets]
        if self._problems or root is None:
            raise ManifestError(sorted(self._problems, key=self._reading_order))
        if root.snapshots is None:
            self._notices += notices.without_snapshots(self._file, self._datasets)
        return Manifest(
            version=root.version,
            kind=root.kind,
            name=root.name,
            path=self._file,
            base_dir=base_dir,
            files=tuple(self._files),
            datasets=tuple(datasets),
            views=tuple(views),
            runtime=root.runtime,
            secrets=root.secrets,
            dependencies=root.dependencies,
            notices=tuple(self._notices),
            snapshots=root.snapshots,
            embedders=self._embedders.embedders(base_dir),
            models=tuple(self._models),
            tools=tuple(self._tools.values()),
            workers=tuple(self._workers.workers),
            rerankers=self._rerankers.rerankers,
            functions=self._functions.functions,
            catalogs=tuple(self._catalogs),
        )

    def _reading_order(self, problem: Problem) -> tuple[int, int]:
        files = [str(file) for file in self._files]
        return files.index(problem.file), problem.line

    def _load(self, file: Path, trail: tuple[Path, ...]) -> top.ManifestSection | None:
        """Read one manifest file; `trail` are the manifests that led to it."""
        content = self._read(file)
        if content is None:
            return None
        checked = checking.check(top.ManifestSection, content)
        self._problems += checked.problems
        self._problems += rules.manifest(content)
        if self._checks_params and checked.shape is not None:
            self._problems += param_rules.manifest(content)
        self._problems += unsupported.problems(content, unsupported.IN_MANIFEST)
        self._notices += notices.of_dependency(content) if trail else notices.of_manifest(content)
        self._load_dependencies(content, (*trail, file))
        self._load_components(content)
        return checked.shape

    def _read(self, file: Path) -> Document | None:
        self._files[file] = None
        if self._given is not None:
            return self._given
        try:
            return document.read(file)
        except ManifestError as exc:
            self._problems += exc.problems
            return None

    def _load_dependencies(self, content: Document, trail: tuple[Path, ...]) -> None:
        for index, text in enumerate(_items(content, "dependencies")):
            if not isinstance(text, str) or not text:
                continue
            try:
                file = places.dependency_file(text, content.path.parent, self._file.parent)
                self._load_dependency(file, trail)
            except ValueError as exc:
                self._problems.append(content.problem(("dependencies", index), str(exc)))

    def _load_dependency(self, file: Path, trail: tuple[Path, ...]) -> None:
        seen = [passed.resolve() for passed in trail]
        if file.resolve() in seen:
            circle = [*trail[seen.index(file.resolve()) :], file]
            raise ValueError(f"the dependencies form a circle: {' -> '.join(map(str, circle))}")
        # Two dependencies may share a third: it is read once.
        if file.resolve() not in self._finished:
            self._load(file, trail)
            self._finished.add(file.resolve())

    def _load_components(self, content: Document) -> None:
        for section in top.COMPONENTS:
            for index, item in enumerate(_items(content, section)):
                if isinstance(item, dict):
                    self._load_component(section, content.part(section, index))

    def _load_component(self, section: str, item: Document) -> None:
        found = self._follow(section, item) if "ref" in item.value else item
        if found is None:
            return
        found = aliases.renamed(section, found)
        checked = checking.check(top.COMPONENTS[section], found)
        self._problems += checked.problems
        if section in _RULES:
            self._problems += _RULES[section](found)
        if section in _REFUSALS:
            self._problems += unsupported.problems(found, _REFUSALS[section])
        if section in param_rules.COMPONENTS and self._checks_params:
            self._problems += param_rules.COMPONENTS[section](found)
        if section in ("datasets", "views"):
            self._notices += notices.of_dataset(found)
        match checked.shape:
            case shapes.DatasetSection() as shape:
                self._add_dataset(shape, found)
            case shapes.ViewSection() as shape:
                self._add_view(shape, found)
            case components.CatalogSection() as shape:
                self._add_catalog(shape, found)
            case tool_shapes.ToolSection() as shape:
                self._add_tool(shape, found)
            case DeclaredEmbedder() as embedder:
                self._problems += self._embedders.add(embedder, found)
            case DeclaredReranker() as reranker:
                self._problems += self._rerankers.add(reranker, found)
            case Model() as model:
                self._add_model(model, found)
            case worker_shapes.WorkerSection() as shape:
                self._problems += self._workers.add(shape, found)
            case function_shapes.FunctionSection() as shape:
                self._add_function(shape, found)

    def _follow(self, section: str, item: Document) -> Document | None:
        """Read the target of a `ref`."""
        text = item.value["ref"]
        for key in set(item.value) - {"ref", "dependsOn"}:
            self._add(
                item, (key,), f"'{key}' is not allowed together with 'ref'; move it into that file"
            )
        if not isinstance(text, str) or not text:
            self._add(item, ("ref",), "must be the path of a file or a folder")
            return None
        try:
            return self._read(
                places.component_file(places.sibling(item.path.parent, text), section)
            )
        except ValueError as exc:
            self._add(item, ("ref",), str(exc))
            return None

    def _add_dataset(self, shape: shapes.DatasetSection, found: Document) -> None:
        if self._is_new(shape.name, found):
            self._add_as_dataset(building.dataset(shape, found.path.parent), found)

    def _add_catalog(self, shape: components.CatalogSection, found: Document) -> None:
        if self._is_new_in(self._declared_catalogs, shape.name, shape.name, found):
            self._catalogs.append(building.catalog(shape, found.path.parent))

    def _add_tool(self, shape: tool_shapes.ToolSection, found: Document) -> None:
        if shape.name in self._tools:
            self._add(found, ("name",), f"the tool '{shape.name}' is declared twice")
        elif not any(tool_rules.tool(found)):
            tool = self._tools[shape.name] = tool_rules.declared(shape)
            if tool.as_sql:
                self._problems += self._functions.add(function_rules.of_tool(tool), found)

    def _add_function(self, shape: function_shapes.FunctionSection, found: Document) -> None:
        if not shape.enabled or any(function_rules.function(found)):
            return
        body = (
            shape.body if shape.body_ref is None else self._sql(shape.body_ref, found, "body_ref")
        )
        if body is not None:
            self._problems += self._functions.add(function_rules.declared(shape, body), found)

    def _with_calls(self, table: _Table) -> _Table:
        """Return a dataset or view whose SQL calls no function of the manifest."""
        found = self._texts[table.name]

        def expanded(sql: str, *location: str) -> str:
            return self._functions.expanded(
                sql, lambda message: self._add(found, location, message)
            )

        if isinstance(table, View):
            return replace(table, sql=expanded(table.sql, _sql_key(found)))
        if table.connector == VIEW:
            table = replace(table, path=expanded(table.path, _sql_key(found)))
        if (settings := table.acceleration) is None:
            return table
        refresh, retention = settings.refresh, settings.retention
        if refresh.sql is not None:
            refresh = replace(refresh, sql=expanded(refresh.sql, "acceleration", "refresh_sql"))
        if retention is not None and retention.sql is not None:
            sql = expanded(retention.sql, "acceleration", "retention_sql")
            retention = replace(retention, sql=sql)
        return replace(table, acceleration=replace(settings, refresh=refresh, retention=retention))

    def _add_as_dataset(self, dataset: Dataset, found: Document) -> None:
        self._datasets.append(dataset)
        self._texts[dataset.name] = found
        self._embedders.want(dataset.search, found)

    def _add_view(self, shape: shapes.ViewSection, found: Document) -> None:
        is_new = self._is_new(shape.name, found)
        sql = shape.sql if shape.sql_ref is None else self._sql(shape.sql_ref, found)
        if not is_new or sql is None:
            return
        if shape.acceleration is not None and shape.acceleration.enabled:
            self._add_as_dataset(building.accelerated_view(shape, sql, found.path.parent), found)
        else:
            view = building.view(shape, sql, found.path.parent)
            self._views.append(view)
            self._texts[view.name] = found
            self._embedders.want(view.search, found)

    def _add_model(self, model: Model, found: Document) -> None:
        if self._is_new_in(self._declared_models, model.name, model.name, found):
            self._models.append(model)
            self._tool_references.add(found)

    def _sql(self, text: str, found: Document, key: str = "sql_ref") -> str | None:
        file = places.sibling(found.path.parent, text)
        self._files[file] = None
        try:
            sql = document.read_text(file)
        except ManifestError as exc:
            message = f"the file '{file}' {exc.problems[0].message}"
            self._add(found, (key,), message)
            return None
        if not sql.strip():
            self._add(found, (key,), f"the file '{file}' is empty")
            return None
        return sql

    def _is_new(self, name: str, found: Document) -> bool:
        return self._is_new_in(self._declared, names.identity(name), name, found)

    def _is_new_in(self, declared: dict[str, str], key: str, name: str, found: Document) -> bool:
        if (first := declared.get(key)) is not None:
            self._add(found, ("name",), f"the name '{name}' is taken: it is declared at {first}")
            return False
        declared[key] = f"{found.path}:{found.line(('name',))}"
        return True

    def _add(self, where: Document, location: Location, message: str) -> None:
        self._problems.append(where.problem(location, message))


def _items(content: Document, section: str) -> Iterable[object]:
    items = content.value.get(section)
    return items if isinstance(items, list) else ()


def _sql_key(found: Document) -> str:
    return "sql" if found.value.get("sql") is not None else "sql_ref"
