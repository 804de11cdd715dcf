"""Stages of which a database answers the whole fragment: each task sends a statement instead.

A task that reads a share of the table asks for the key ranges of its share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from substrait.algebra_pb2 import Rel
from substrait.plan_pb2 import Plan

from caraway_core.ids import TableName
from caraway_core.pieces import SplitPiece
from caraway_core.protocols.fleet import Share
from caraway_core.tables import RemoteSplit, RemoteTable, TableSpec
from caraway_core.work import SourceQuery
from caraway_engine.remote import datasets, unfolding
from caraway_engine.remote.kinds import NotPushableError
from caraway_engine.remote.queries import RemoteQuery
from caraway_engine.remote.relations import Translator
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.graph import Stage, StageGraph
from caraway_engine.stages.relations import kind, table_name, walk

Shares = Mapping[TableName, Sequence[Share]]


def answered(
    graph: StageGraph, tables: Mapping[TableName, TableSpec], shares: Shares
) -> StageGraph:
    """Give the stages of a graph the statements that their databases answer."""
    root = graph.root and _answered(graph.root, tables, shares)
    stages = {name: _answered(each, tables, shares) for name, each in graph.stages.items()}
    return StageGraph(stages, root)


def _answered(stage: Stage, tables: Mapping[TableName, TableSpec], shares: Shares) -> Stage:
    if stage.readings or stage.works:
        return stage
    plan = Plan()
    plan.ParseFromString(stage.plan)
    rel = plan.relations[0].rel
    name = _only_table(rel)
    table = tables.get(name) if name is not None else None
    if name is None or not isinstance(table, RemoteTable):
        return stage
    translator = Translator(Functions(plan), tables, datasets.relation)
    try:
        query = translator.query(unfolding.unfolded(rel))
        if not query.columns:
            return stage  # Rows without columns are counted by the engine.
        works = tuple(
            _statement(query, stage, table, each) for each in _splits(stage, name, shares)
        )
    except NotPushableError:
        return stage
    return replace(stage, works=works)


def _splits(
    stage: Stage, table: TableName, shares: Shares
) -> Sequence[Sequence[RemoteSplit] | None]:
    """Return the splits that each task reads; None: it reads the whole table.

    Raises:
        NotPushableError: a share is of something else.
    """
    if table not in stage.tables:
        if stage.count != 1:
            raise NotPushableError("the whole table in each of several tasks")
        return [None]
    found = []
    for share in shares[table]:
        pieces = [each.split for each in share.pieces if isinstance(each, SplitPiece)]
        splits = [each for each in pieces if isinstance(each, RemoteSplit)]
        if len(splits) < len(share.pieces):
            raise NotPushableError("a share that is not of key ranges")
        found.append(splits)
    return found


def _statement(
    query: RemoteQuery, stage: Stage, table: RemoteTable, splits: Sequence[RemoteSplit] | None
) -> SourceQuery:
    if splits is not None:
        test = _in_any(table, splits)
        # Conditions come before groups, order and limit, so a task has those of its share.
        query = replace(query, tests=(*query.tests, test))
    return SourceQuery(table, query.sql(stage.schema), stage.schema, query.is_reducing)


def _in_any(table: RemoteTable, splits: Sequence[RemoteSplit]) -> str:
    tests = [datasets.in_split(table, each) for each in splits]
    return f"({' OR '.join(tests)})" if tests else "FALSE"


def _only_table(rel: Rel) -> TableName | None:
    """Return the table that a fragment reads, if it reads only one, and once."""
    names = [table_name(each) for each in walk(rel) if kind(each) == "read"]
    return names[0] if len(names) == 1 else None
