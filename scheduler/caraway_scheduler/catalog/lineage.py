"""The tables that views read, and the views that read a table: from their queries and plans."""

from collections.abc import Mapping
from dataclasses import dataclass

from caraway_core.ids import TableName
from caraway_core.manifest.values.values import VIEW, Dataset, View
from caraway_core.sqltext import mentions
from caraway_core.statements import ViewFacts
from caraway_scheduler.catalog.states import DatasetState, ViewState, source_of


@dataclass(frozen=True, slots=True)
class TableLineage:
    """The tables and views that one reads, and those that read it, without what is between."""

    reads: tuple[TableName, ...] = ()
    read_by: tuple[TableName, ...] = ()


def of(
    name: TableName,
    datasets: Mapping[TableName, DatasetState],
    views: Mapping[TableName, ViewState],
    planned: Mapping[TableName, ViewFacts],
) -> TableLineage:
    """Return the lineage of a dataset or view."""
    queries = _queries(datasets, views)
    names = (datasets.keys() | queries.keys()) - {name}
    own = queries.get(name)
    reads = set() if own is None else _reads(name, own, names, queries, planned)
    word = name.rpartition(".")[2].lower()
    read_by = (
        each
        for each, sql in queries.items()
        # Most of ten thousand views do not name it, and their texts need not be read by words.
        if each != name and word in sql.lower() and _reads(each, sql, {name}, queries, planned)
    )
    return TableLineage(tuple(sorted(reads)), tuple(sorted(read_by)))


def query_of(declared: Dataset | View) -> str | None:
    """Return the query of a view, also of an accelerated one; None if it has none."""
    if isinstance(declared, View):
        return declared.sql
    return declared.path if declared.connector == VIEW else None


def _queries(
    datasets: Mapping[TableName, DatasetState], views: Mapping[TableName, ViewState]
) -> dict[TableName, str]:
    declared = {
        name: query_of(state.dataset) or (state.spec.query if state.spec else None)
        for name, state in datasets.items()
    }
    declared |= {name: query_of(state.view) for name, state in views.items()}
    return {name: sql for name, sql in declared.items() if sql is not None}


def _reads(
    name: TableName,
    sql: str,
    names: set[TableName],
    queries: Mapping[TableName, str],
    planned: Mapping[TableName, ViewFacts],
) -> set[TableName]:
    """Return the known tables that a query names, less those that its plan does not read."""
    named = mentions.mentioned(sql, names)
    facts = _facts(name, planned)
    if facts is None or facts.missing is not None:
        return named
    return {each for each in named if _is_read(each, facts, queries, planned)}


def _is_read(
    name: TableName,
    facts: ViewFacts,
    queries: Mapping[TableName, str],
    planned: Mapping[TableName, ViewFacts],
) -> bool:
    """Return whether a plan reads a table that may be a view: plans have tables only."""
    if name in facts.reads or source_of(name) in facts.reads:
        return True
    behind = _facts(name, planned) if name in queries else None
    return behind is not None and behind.reads <= facts.reads


def _facts(name: TableName, planned: Mapping[TableName, ViewFacts]) -> ViewFacts | None:
    return planned.get(name) or planned.get(source_of(name))
