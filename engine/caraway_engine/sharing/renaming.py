"""Renames the tables that a fragment reads, from catalog tables to the task's shares."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from substrait.plan_pb2 import Plan

from caraway_core.ids import TableName
from caraway_engine.stages.inputs import INPUT_PREFIX, INPUT_SCHEMA
from caraway_engine.stages.relations import kind, table_name, walk

_MOST_KEPT, _MOST_BYTES = 256, 64 * 1024


@dataclass(frozen=True, slots=True)
class Renamed:
    """A fragment after renaming, the tables that were renamed (`read`) and the others (`left`)."""

    fragment: bytes
    read: frozenset[TableName]
    left: frozenset[TableName]


def renamed(fragment: bytes, names: Mapping[TableName, str]) -> Renamed:
    """Make a fragment read catalog tables as inputs of other names."""
    rename = _renamed_before if len(fragment) <= _MOST_BYTES else _renamed
    return rename(fragment, frozenset(names.items()))


def _renamed(fragment: bytes, named: frozenset[tuple[TableName, str]]) -> Renamed:
    plan, names = Plan(), dict(named)
    plan.ParseFromString(fragment)
    read: set[TableName] = set()
    left: set[TableName] = set()
    for rel in walk(plan.relations[0].rel):
        if kind(rel) != "read" or rel.read.named_table.names[0] == INPUT_SCHEMA:
            continue
        table = table_name(rel)
        if table in names:
            read.add(table)
            del rel.read.named_table.names[:]
            rel.read.named_table.names.extend((INPUT_SCHEMA, INPUT_PREFIX + names[table]))
        else:
            left.add(table)
    return Renamed(bytes(plan.SerializeToString()), frozenset(read), frozenset(left))


_renamed_before = lru_cache(_MOST_KEPT)(_renamed)
"""Tasks run again with the same fragment, which takes a tenth of their planning to parse."""
