"""Gives times of day one precision.

DataFusion 55 makes nanoseconds of `TIME '12:00'` and of casts, and does not compare them with the
microseconds that files and databases hold.
"""

import re

import pyarrow as pa

from caraway_engine.known_faults import syntax, texts
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.syntax import Tree

_MAY_APPLY = re.compile(r"\btime\s*'|\bas\s+time\b|::\s*time\b", re.IGNORECASE)
_MICROSECONDS = "arrow_cast(__a, 'Time64(Microsecond)')"
_NANOSECONDS = pa.time64("ns")


def aligned(sql: str, types: Types) -> str | None:
    """Write the times of day of a statement in microseconds; None if there are none.

    They stay in nanoseconds where all columns that it may compare with them are.
    """
    if not _MAY_APPLY.search(sql):
        return None
    return texts.rewritten(sql, types, lambda statement: _align(statement, types))


def _align(statement: Tree, types: Types) -> bool:
    times = [each for each in syntax.everything(statement) if _is_time(each)]
    if not times or _stored_times(statement, types) == {_NANOSECONDS}:
        return False
    for each in times:
        syntax.replace(each, syntax.filled(_MICROSECONDS, a=dict(each)))
    return True


def _stored_times(statement: Tree, types: Types) -> set[pa.DataType]:
    """Return the types of the times of day in the tables and views that a statement reads."""
    found = [each.get("Table") for each in syntax.everything(statement)]
    tables = [{"Table": {**each, "alias": None}} for each in found if isinstance(each, dict)]
    schemas = [types.schema_of_relation(each) for each in tables]
    stored = [type_ for schema in schemas if schema is not None for type_ in schema.types]
    return {type_ for type_ in stored if pa.types.is_time(type_)}


def _is_time(tree: Tree) -> bool:
    kind = syntax.kind(tree)
    if kind not in ("Cast", "TypedString"):
        return False
    return syntax.kind(tree[kind]["data_type"]) == "Time"
