"""Moments with a time zone, and lengths of time: DataFusion 55 compares them wrongly.

It makes a moment of UTC without a zone of TIMESTAMPTZ, which then counts as one of the zone that it
is compared with. It compares intervals by months, then by days, then by the rest, so that a month
is more than 40 days, and the difference of two moments, which has neither, less than any days.
"""

import re
from collections.abc import Iterator

import pyarrow as pa

from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.scopes import Scope, Types
from caraway_engine.known_faults.syntax import Tree

_NAMES_ZONE = re.compile(r"\d\d:\d\d.*(?:Z|[+-]\d\d(?::?\d\d)?)$", re.IGNORECASE)
_WITH_ZONE = ("Tz", "WithTimeZone")
_IN_UTC = "arrow_cast(__a, 'Timestamp(ns, Some(\"+00:00\"))')"


_COMPARISONS = frozenset({"Eq", "NotEq", "Lt", "LtEq", "Gt", "GtEq", "Spaceship"})
_DISTINCT = ("IsDistinctFrom", "IsNotDistinctFrom")
# A day has 24 hours, a month 30 days, as in other databases. The cast keeps parts of a second.
_SECONDS = "date_part('epoch', CAST(__a AS INTERVAL))"


def mend(scope: Scope, types: Types) -> bool:
    """Have what is of type TIMESTAMPTZ keep its zone; tell if there was any."""
    changes = [(each, _valued(each)) for each in scope.expressions() if _has_zone(each)]
    # Where it is compared TIMESTAMP '...Z' is a moment, too; elsewhere its type is what was asked.
    for condition in (scope.select["selection"], scope.select["having"]):
        changes += [(each, _valued(each)) for each in syntax.inside(condition) if _is_of_zone(each)]
    for old, value in changes:
        syntax.replace(old, syntax.filled(_IN_UTC, a=value))
    return bool(changes)


def _has_zone(tree: Tree) -> bool:
    if syntax.kind(tree) not in ("TypedString", "Cast"):
        return False
    type_ = syntax.body(tree)["data_type"]
    return syntax.kind(type_) == "Timestamp" and type_["Timestamp"][1] in _WITH_ZONE


def _is_of_zone(tree: Tree) -> bool:
    if syntax.kind(tree) != "TypedString" or _has_zone(tree):
        return False
    text = next(iter(tree["TypedString"]["value"]["value"].values()))
    is_moment = syntax.kind(tree["TypedString"]["data_type"]) == "Timestamp"
    return is_moment and isinstance(text, str) and bool(_NAMES_ZONE.search(text))


def _valued(tree: Tree) -> Tree:
    found = syntax.body(tree)
    return found["expr"] if "Cast" in tree else {"Value": found["value"]}


def candidates(scope: Scope) -> list[Tree]:
    """Return the expressions whose types say if lengths of time are compared."""
    return [side for sides in _compared(scope) for side in sides]


def mend_lengths(scope: Scope, types: Types) -> bool:
    """Have lengths of time be compared in seconds; tell if there were any."""
    changes = [
        side
        for sides in _compared(scope)
        if all(map(_is_length, types.of(scope, sides)))
        for side in sides
    ]
    for side in changes:
        syntax.replace(side, syntax.filled(_SECONDS, a=dict(side)))
    return bool(changes)


def _is_length(type_: pa.DataType | None) -> bool:
    if type_ is None:
        return False
    return bool(pa.types.is_interval(type_) or pa.types.is_duration(type_))


def _compared(scope: Scope) -> Iterator[list[Tree]]:
    for each in scope.expressions():
        sides = _sides(each)
        if any(map(_is_interval, sides)):
            yield sides


def _sides(tree: Tree) -> list[Tree]:
    kind = syntax.kind(tree)
    found = syntax.body(tree) if kind else {}
    if kind == "BinaryOp" and found["op"] in _COMPARISONS:
        return [found["left"], found["right"]]
    if kind in _DISTINCT:
        return list(found)
    if kind == "Between":
        return [found["expr"], found["low"], found["high"]]
    return [found["expr"], *found["list"]] if kind == "InList" else []


def _is_interval(tree: Tree) -> bool:
    """Tell if something is written as an interval."""
    inner = syntax.unnested(tree)
    match syntax.kind(inner):
        case "Interval":
            return True
        case "Cast":
            return syntax.kind(inner["Cast"]["data_type"]) == "Interval"
        case "BinaryOp":
            return all(_is_interval(inner["BinaryOp"][side]) for side in ("left", "right"))
    return False
