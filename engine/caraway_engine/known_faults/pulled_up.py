"""Refuses correlated subqueries whose conditions DataFusion 55 applies too late.

A condition that compares with a column of an outer query becomes the condition of a join. What the
subquery does after WHERE then sees the rows of all outer rows: windows count them together, and the
total of a grouping set, which is a row for each outer row, is lost. HAVING of a LATERAL subquery
that aggregates all rows to one removes no row, but makes its columns NULL.
"""

import re
from collections.abc import Iterator

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import joining, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_SUBQUERY = re.compile(r"\(\s*(?:select|with)\b")
_WINDOWS = (
    "window functions",
    "compare by = only, and PARTITION BY the columns that are compared",
)
_GROUPING_SETS = (
    "ROLLUP, CUBE or GROUPING SETS",
    "join a subquery that also groups by the columns that are compared",
)
_HAVING = (
    "HAVING and without GROUP BY after LATERAL",
    "write the condition of HAVING in WHERE of the outer query",
)


def may_apply(words: str) -> bool:
    """Return whether a statement in lower case may have such a subquery, apart from windows."""
    has_sets = "rollup" in words or "cube" in words or "grouping" in words
    return (has_sets and _SUBQUERY.search(words) is not None) or (
        "lateral" in words and "having" in words
    )


def check(scope: SelectScope, types: Types) -> None:
    """Check the subqueries in the expressions of a SELECT, and those after LATERAL.

    Raises:
        InvalidQueryError: one of them would have a wrong result.
    """
    for query, place in _subqueries(scope):
        for select, of in _selects(query):
            cause = _cause(select, place if of is query else "")
            if cause and not _stands_alone(select, of, scope, types):
                if cause == _WINDOWS and _is_partitioned(select, of, scope, types):
                    continue
                raise InvalidQueryError(
                    f"a subquery with {cause[0]} that compares with columns of the outer query is "
                    f"not supported: the engine would compare too late; {cause[1]}"
                )


def _subqueries(scope: SelectScope) -> Iterator[tuple[Tree, str]]:
    for each in scope.expressions():
        match syntax.kind(each):
            case "Exists" | "InSubquery" as kind:
                yield each[kind]["subquery"], kind
            case "Subquery":
                yield each["Subquery"], ""
    # A LEFT JOIN ON true has a row of NULLs in any case.
    kept = [id(each["relation"]) for each in scope.joins() if _keeps_all(each)]
    for each in syntax.inside(scope.select["from"]):
        if "Derived" in each and each["Derived"]["lateral"]:
            yield each["Derived"]["subquery"], "" if id(each) in kept else "Lateral"


def _keeps_all(join: Tree) -> bool:
    operator = join["join_operator"]
    is_left = isinstance(operator, dict) and syntax.kind(operator) in ("Left", "LeftOuter")
    return is_left and [_value(each) for each in scopes.on(join)] == [{"Boolean": True}]


def _value(condition: Tree) -> Tree:
    inner = syntax.unnested(condition)
    return inner["Value"]["value"] if syntax.kind(inner) == "Value" else None


def _selects(query: Tree) -> Iterator[tuple[Tree, Tree]]:
    """Yield the SELECTs of a query and of those in FROM, each with its query."""
    waiting = [(query["body"], query)]
    while waiting:
        tree, of = waiting.pop()
        if "SetOperation" in tree:
            waiting += [(tree["SetOperation"][side], of) for side in ("left", "right")]
        elif "Query" in tree:
            waiting.append((tree["Query"]["body"], tree["Query"]))
        elif "Select" in tree:
            yield tree["Select"], of
            inner = filter(syntax.is_query, syntax.inside(tree["Select"]["from"]))
            waiting += [(each["body"], each) for each in inner]


def _cause(select: Tree, place: str) -> tuple[str, str] | None:
    """Return what the engine would do too early; `place` is that of the whole subquery."""
    group_by = select["group_by"].get("Expressions")
    if group_by and (
        group_by[1] or any(syntax.kind(each) in scopes.GROUPING_SETS for each in group_by[0])
    ):
        return _GROUPING_SETS
    inner = SelectScope(select, syntax.query({"Select": select}), None, None, False)
    aggregates = scopes.has_aggregate([select["projection"], select["having"]])
    if place == "Lateral" and select["having"] and aggregates and not scopes.is_grouped(inner):
        return _HAVING
    # The number of rows is right.
    counts = place != "Exists" or select["qualify"]
    return (
        _WINDOWS if counts and any("WindowSpec" in each for each in syntax.inside(select)) else None
    )


def _stands_alone(select: Tree, of: Tree, scope: SelectScope, types: Types) -> bool:
    return types.can_stand_alone({**of, "body": {"Select": select}, "order_by": None}, scope)


def _is_partitioned(select: Tree, of: Tree, scope: SelectScope, types: Types) -> bool:
    """Return whether all windows are divided by the columns that outer ones are equal to."""
    if not _stands_alone({**select, "selection": None}, of, scope, types):
        return False
    compared: list[list[tuple[str, ...]]] = []
    for condition in joining.conjuncts(select["selection"]):
        if not _stands_alone({**select, "selection": condition}, of, scope, types):
            if syntax.kind(condition) != "BinaryOp" or condition["BinaryOp"]["op"] != "Eq":
                return False
            compared.append([_name(condition["BinaryOp"][side]) for side in ("left", "right")])
    specs = [each["WindowSpec"] for each in syntax.inside(select) if "WindowSpec" in each]
    return all(_divides(spec["partition_by"], sides) for spec in specs for sides in compared)


def _divides(partition_by: list[Tree], sides: list[tuple[str, ...]]) -> bool:
    names = [name for each in partition_by if (name := _name(each))]
    return any(name == side[-len(name) :] for name in names for side in sides)


def _name(expression: Tree) -> tuple[str, ...]:
    """Return the parts of the name of a column; empty for other expressions."""
    inner = syntax.unnested(expression)
    match syntax.kind(inner):
        case "Identifier":
            return (syntax.spelled(inner["Identifier"]),)
        case "CompoundIdentifier":
            return tuple(map(syntax.spelled, inner["CompoundIdentifier"]))
    return ()
