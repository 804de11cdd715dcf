"""Rewrites timestamps with a time zone, which DataFusion 55 compares wrongly.

It turns a TIMESTAMPTZ into a UTC timestamp without a zone. That timestamp then takes the zone of
the value that it is compared with.
"""

import re

import pyarrow as pa

from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_CLOCK = re.compile(r"\d\d:\d\d")
_ZONE = re.compile(r"(?:Z|[+-]\d\d(?::?\d\d)?)$", re.IGNORECASE)
_WITH_ZONE = ("Tz", "WithTimeZone")
_TRIED = ("TryCast", "SafeCast")
_IN_UTC = "arrow_cast(__a, 'Timestamp(ns, Some(\"+00:00\"))')"
_TRIED_IN_UTC = "arrow_try_cast(__a, 'Timestamp(ns, Some(\"+00:00\"))')"
# A CAST of a BIGINT counts seconds, but `arrow_cast` counts nanoseconds.
_SECONDS = "arrow_cast(__a, 'Timestamp(s)')"


def mend(scope: SelectScope, types: Types) -> bool:
    """Keep the zone of TIMESTAMPTZ values; return whether there were any."""
    trees = [each for each in scope.expressions() if _has_zone(each)]
    # In comparisons TIMESTAMP '...Z' has a zone, too; elsewhere its type is as requested.
    for condition in (scope.select["selection"], scope.select["having"]):
        trees += [each for each in syntax.inside(condition) if _is_of_zone(each)]
    values = [_valued(each) for each in trees]
    for old, value, type_ in zip(trees, values, types.types_of(scope, values), strict=True):
        is_tried = "Cast" in old and old["Cast"]["kind"] in _TRIED
        if type_ == pa.int64() and not is_tried:
            value = syntax.filled(_SECONDS, a=value)
        syntax.replace(old, syntax.filled(_TRIED_IN_UTC if is_tried else _IN_UTC, a=value))
    return bool(trees)


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
    if not is_moment or not isinstance(text, str):
        return False
    # One pattern would look at the rest of the text for each time of day.
    clock = _CLOCK.search(text)
    return clock is not None and _ZONE.search(text, clock.end()) is not None


def _valued(tree: Tree) -> Tree:
    body = syntax.body(tree)
    return body["expr"] if "Cast" in tree else {"Value": body["value"]}
