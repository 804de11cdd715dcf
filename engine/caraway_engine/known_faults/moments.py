"""Rewrites timestamps with a time zone, which DataFusion 55 compares wrongly.

It turns a TIMESTAMPTZ into a UTC timestamp without a zone. That timestamp then takes the zone of
the value that it is compared with.
"""

import re

from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.scopes import SelectScope, Types
from caraway_engine.known_faults.syntax import Tree

_NAMES_ZONE = re.compile(r"\d\d:\d\d.*(?:Z|[+-]\d\d(?::?\d\d)?)$", re.IGNORECASE)
_WITH_ZONE = ("Tz", "WithTimeZone")
_IN_UTC = "arrow_cast(__a, 'Timestamp(ns, Some(\"+00:00\"))')"


def mend(scope: SelectScope, types: Types) -> bool:
    """Keep the zone of TIMESTAMPTZ values; return whether there were any."""
    changes = [(each, _valued(each)) for each in scope.expressions() if _has_zone(each)]
    # In comparisons TIMESTAMP '...Z' has a zone, too; elsewhere its type is as requested.
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
