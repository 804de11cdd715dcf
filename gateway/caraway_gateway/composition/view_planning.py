"""Plans the functions of a manifest and the views that search, as `caraway validate` does.

Only the columns of local files are known without asking other systems, so only what reads these is
planned. A function is planned as a view that calls it.
"""

import asyncio
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from caraway_core.errors import CarawayError, Problem, QueryError
from caraway_core.ids import CatalogVersion, TableName
from caraway_core.loading import registry
from caraway_core.manifest import Dataset, Manifest, View
from caraway_core.manifest.secrets import references
from caraway_core.manifest.values.values import VIEW
from caraway_core.sqltext import mentions, table_calls
from caraway_core.sqltext.expanding import Expander
from caraway_core.sqltext.searching import FUNCTIONS
from caraway_core.sqltext.sql_functions import FunctionParameter, SqlFunction
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_core.statements.questions import SearchQuestion
from caraway_core.tables import MemoryTable, TableSpec, ViewTable
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.routing import Prepared
from caraway_scheduler.catalog import lineage
from caraway_scheduler.catalog.asking import SourceCalls

_VECTOR = pa.list_(pa.float32())
_PLACE = pa.list_(pa.int32())
_FUNCTIONS = "caraway_function"
"""The schema of the views that call functions."""
_OWN_NAMES = re.compile(rf"{_FUNCTIONS}\.\w+(?:, )?")
_SAMPLES = {"integer": "1", "number": "1", "string": "'text'"}


@dataclass(frozen=True, slots=True)
class PlannedViews:
    """Results of planning: problems, and the reasons why views and functions failed."""

    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def planned(manifest: Manifest) -> PlannedViews:
    """Plan all functions, and the views that search, directly or through others."""
    views = {TableName(each.name): each for each in manifest.views}
    searching = {name for name, each in views.items() if table_calls.may_have(each.sql, FUNCTIONS)}
    calls = _calls(manifest)
    searching |= calls.keys()
    if not searching:
        return PlannedViews()
    views |= calls
    datasets = {TableName(each.name): each for each in manifest.datasets}
    behind = {name: _behind(name, {**views, **datasets}) for name in views}
    names = [name for name in sorted(views) if not searching.isdisjoint(behind[name])]
    needed = {name for view in names for name in behind[view]}
    read = {name: each for name, each in datasets.items() if name in needed}
    specs, unknown = asyncio.run(_specs(manifest, read))
    notes = []
    declared: dict[TableName, View | Dataset] = {**views, **datasets}
    for name, each in declared.items():
        if found := _in_catalogs(each, manifest):
            unknown[name] = f"'{found}' are those of its catalog"
    for view in list(names):
        if lacking := sorted(behind[view] & unknown.keys()):
            names.remove(view)
            notes.append(f"{_title(view)} is not planned: the columns of {unknown[lacking[0]]}")
    if not names:
        return PlannedViews(notes=tuple(notes))
    specs |= {name: ViewTable(each.sql) for name, each in views.items() if name in needed}
    failed = asyncio.run(_failed(specs, names))
    problems = (
        Problem(str(manifest.path), 0, _title(name), _OWN_NAMES.sub("", message))
        for name, message in failed.items()
    )
    return PlannedViews(tuple(problems), tuple(notes))


def _calls(manifest: Manifest) -> dict[TableName, View]:
    """Return a view for each function that calls it."""
    expander = Expander(manifest.functions)
    return {
        TableName(f"{_FUNCTIONS}.{each.name}"): View(
            each.name, expander.expanded(_call(each)).sql, manifest.base_dir
        )
        for each in manifest.functions
    }


def _call(function: SqlFunction) -> str:
    samples = [_sample(each) for each in function.parameters]
    if function.is_table:
        return f"SELECT * FROM {function.name}({', '.join(samples)})"
    names = [f'"{each.name}"' for each in function.parameters]
    columns = [
        f"{each.cast.cast_of(sample)} AS {name}"
        for each, sample, name in zip(function.parameters, samples, names, strict=True)
    ]
    # The parameters next to the call, which must give a value for each row.
    call = f"{function.name}({', '.join(names)})"
    return f"SELECT {', '.join([*names, call])} FROM (SELECT {', '.join(['1', *columns])}) AS args"


def _sample(parameter: FunctionParameter) -> str:
    schema = parameter.schema
    return "NULL" if "format" in schema else _SAMPLES.get(str(schema.get("type")), "NULL")


def _title(name: TableName) -> str:
    schema, _, bare = name.rpartition(".")
    return f"function '{bare}'" if schema == _FUNCTIONS else f"view '{name}'"


def _behind(name: TableName, known: Mapping[TableName, View | Dataset]) -> set[TableName]:
    """Return a view and the tables that it may read: those whose names are in its text."""
    names, waiting = {name}, [name]
    while waiting:
        each = known[waiting.pop()]
        if (text := lineage.query_of(each)) is None:
            continue
        named = mentions.mentioned(text, known)
        waiting += named - names
        names |= named
    return names


def _in_catalogs(declared: View | Dataset, manifest: Manifest) -> str:
    """Return a table of a source catalog that a query names; empty if there is none."""
    text = lineage.query_of(declared) or ""
    catalogs = {each.name for each in manifest.catalogs}
    return next(iter(mentions.of_catalogs(text, catalogs)), "")


async def _specs(
    manifest: Manifest, datasets: Mapping[TableName, Dataset]
) -> tuple[dict[TableName, TableSpec], dict[TableName, str]]:
    """Return empty tables with the columns of datasets, and the unknown columns of others."""
    found: dict[TableName, TableSpec] = {}
    unknown: dict[TableName, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        calls = SourceCalls(Path(folder), 1)
        try:
            calls.secrets = references.build_resolver(manifest, os.environ)
            for name, each in datasets.items():
                if each.connector != VIEW and not registry.connector(each.connector).is_local:
                    unknown[name] = f"'{name}' are those of its source, '{each.connector}'"
                elif each.acceleration is not None and each.acceleration.refresh.sql:
                    unknown[name] = f"'{name}' are those of its `refresh_sql`"
                else:
                    try:
                        found[name] = _empty(each, await calls.resolve(each))
                    except CarawayError as exc:
                        unknown[name] = f"'{name}' are not known: {exc.message}"
        finally:
            calls.close()
    return found, unknown


def _empty(dataset: Dataset, spec: TableSpec) -> TableSpec:
    if spec.query is not None:
        return spec
    schema = spec.schema
    for each in dataset.search.embedded if dataset.acceleration is not None else ():
        if each.vector_column in schema.names:
            continue
        vectors = _VECTOR if each.chunking is None else pa.list_(_VECTOR)
        schema = schema.append(pa.field(each.vector_column, vectors))
        if each.chunking is not None:
            schema = schema.append(pa.field(each.offset_column, pa.list_(_PLACE)))
    return MemoryTable(schema, schema.empty_table())


async def _failed(
    tables: Mapping[TableName, TableSpec], views: Sequence[TableName]
) -> dict[TableName, str]:
    """Plan views, and return the error of each that fails, not of those that read another one.

    An engine process does, since planning may end it.
    """
    failed: dict[TableName, str] = {}
    engine = registry.ENGINES.load("planner")(EngineSettings(1))
    try:
        done: Prepared = await engine.prepare(CatalogSnapshot(CatalogVersion(1), tables, {}))
        await engine.publish()
        for name in views:
            if name in done.failed:
                if name not in done.views or done.views[name].missing not in done.failed:
                    failed[name] = done.failed[name]
                continue
            try:
                # Types are checked when a statement reads the view.
                sql = f"SELECT * FROM {_quoted(name)}"
                await engine.ask(SearchQuestion(Statement(sql, {}, sources=frozenset())))
            except QueryError as exc:
                failed[name] = exc.message
    finally:
        await engine.aclose()
    return failed


def _quoted(name: TableName) -> str:
    return ".".join(f'"{part}"' for part in name.split("."))
