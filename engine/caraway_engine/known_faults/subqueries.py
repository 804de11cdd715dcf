"""Rewrites subqueries in conditions, which DataFusion 55 turns into joins that lose NULLs.

If `x IN (subquery)` is not true, it becomes false even where NULL is correct. This shows under NOT,
OR, IS NULL and in functions. A subquery that counts returns a row even if it counts nothing. The
join of a correlated one has no such row.
"""

from collections.abc import Iterator
from typing import Any

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import ordering, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_THREE_VALUED = (
    "CASE WHEN __found THEN __yes WHEN __nulls OR (__x IS NULL AND __rows) THEN NULL ELSE __no END"
)
_ANY_EQUAL = "EXISTS (SELECT 1 FROM (SELECT 1) AS any_rows(c) WHERE c = __x)"
_ALL_ROWS = "SELECT * FROM (SELECT 1) AS __rows"
_ANY_NULL = "EXISTS (SELECT 1 FROM (SELECT 1) AS any_rows(c) WHERE c IS NULL)"
_COMPARED = {
    "Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">=",
}  # fmt: skip
_INNER = ("Inner", "Join")
_KEYS = ("Identifier", "CompoundIdentifier")


def mend(scope: SelectScope, types: Types) -> bool:
    """Rewrite the subqueries in the conditions of a SELECT; return whether there were any.

    Raises:
        InvalidQueryError: a subquery has no form that the engine evaluates correctly.
    """
    conditions = list(_conditions(scope))
    is_null_false = {
        id(each)
        for condition in conditions
        for each, is_negated in _two_valued(condition, True)
        if not is_negated or _is_safe_negated(each["InSubquery"], scope, types)
    }
    joined = {id(each) for condition in conditions for each in _joined(condition)} & is_null_false
    changes: list[tuple[Tree, Tree]] = []
    is_changed = False
    for each in list(syntax.inside(conditions)):
        if syntax.kind(each) == "InSubquery" and id(each) not in joined:
            is_changed |= _mark_rows(each["InSubquery"]["subquery"], scope, types)
        new = _mended(each, scope, types, is_null_false)
        if new is not None:
            changes.append((each, new))
    for each, new in changes:
        syntax.replace(each, new)
    return is_changed or bool(changes)


def _conditions(scope: SelectScope) -> Iterator[Tree]:
    for key in ("selection", "having", "qualify"):
        if scope.select[key] is not None:
            yield scope.select[key]
    for join in scope.joins():
        operator = join["join_operator"]
        if syntax.kind(operator) in _INNER and syntax.kind(syntax.body(operator)) == "On":
            yield operator[syntax.kind(operator)]["On"]


def _two_valued(condition: Tree, is_top: bool) -> Iterator[tuple[Tree, bool]]:
    """Yield the INs for which false and NULL are equivalent, and whether they are negated."""
    inner = syntax.unnested(condition)
    match syntax.kind(inner):
        case "BinaryOp" if inner["BinaryOp"]["op"] in ("And", "Or"):
            is_still_top = is_top and inner["BinaryOp"]["op"] == "And"
            for side in ("left", "right"):
                yield from _two_valued(inner["BinaryOp"][side], is_still_top)
        case "InSubquery" if is_top or not inner["InSubquery"]["negated"]:
            yield inner, bool(inner["InSubquery"]["negated"])
        case "UnaryOp" if is_top and inner["UnaryOp"]["op"] == "Not":
            negated = syntax.unnested(inner["UnaryOp"]["expr"])
            if syntax.kind(negated) == "InSubquery":
                yield negated, not negated["InSubquery"]["negated"]


def _joined(condition: Tree) -> Iterator[Tree]:
    """Yield the INs that become semi or anti joins, and not a column that marks rows."""
    inner = syntax.unnested(condition)
    match syntax.kind(inner):
        case "BinaryOp" if inner["BinaryOp"]["op"] == "And":
            for side in ("left", "right"):
                yield from _joined(inner["BinaryOp"][side])
        case "InSubquery":
            yield inner


def _mark_rows(query: Tree, scope: SelectScope, types: Types) -> bool:
    """Let a column mark the rows of a subquery: the engine fails for DISTINCT, ORDER BY and LIMIT.

    A DISTINCT alone does not matter, and the others are put into a subquery.
    """
    select = query["body"].get("Select")
    if query["limit_clause"] or query["fetch"] or query["order_by"]:
        if not types.can_stand_alone(query, scope):
            return False
        (made,) = syntax.parse(_ALL_ROWS)
        derived = made["Query"]["body"]["Select"]["from"][0]["relation"]["Derived"]
        derived["subquery"] = dict(query)
        syntax.replace(query, made["Query"])
        return True
    if select is None or select["distinct"] != "Distinct":
        return False
    select["distinct"] = None
    return True


def _is_safe_negated(found: dict[str, object], scope: SelectScope, types: Types) -> bool:
    """Return whether the engine finds the NULLs of a NOT IN.

    It needs a key to join by, and has none if the value is a constant, or may be simplified to one.
    It also loses rows where the subquery of an outer row has none.
    """
    value = syntax.unnested(found["expr"])
    while syntax.kind(value) == "Cast":
        value = syntax.unnested(value["Cast"]["expr"])
    is_key = syntax.kind(value) in _KEYS
    return is_key and types.can_stand_alone(found["subquery"], scope)


def _mended(tree: Tree, scope: SelectScope, types: Types, is_null_false: set[int]) -> Tree | None:
    match syntax.kind(tree):
        case "Exists":
            return _exists(tree["Exists"], scope, types)
        case "InSubquery":
            found = tree["InSubquery"]
            if _counts(found["subquery"], scope, types):
                is_negated = found["negated"]
                sign = "<>" if is_negated else "="
                return _compared(found["expr"], sign, found["subquery"], of_all=is_negated)
            _check_limit(found["subquery"], scope, types)
            if id(tree) not in is_null_false:
                return _three_valued(found, scope, types)
            is_found = _is_of_constants(found, scope, types)
            return _found(found) if is_found and not found["negated"] else None
        case "AnyOp" | "AllOp":
            found = syntax.body(tree)
            right = syntax.unnested(found["right"])
            if syntax.kind(right) != "Subquery":
                return None
            query = right["Subquery"]
            if _counts(query, scope, types):
                sign = _COMPARED[found["compare_op"]]
                of_all = syntax.kind(tree) == "AllOp"
                return _compared(found["left"], sign, query, of_all=of_all)
            _check_limit(query, scope, types)
    return None


def _compared(left: Tree, sign: str, query: Tree, *, of_all: bool) -> Tree:
    """Compare with a scalar subquery: the engine knows that a count of no rows is zero.

    Without a row, which HAVING may remove, ALL is true and ANY is false.
    """
    compared = syntax.filled(f"__a {sign} __b", a=left, b={"Subquery": query})
    having = query["body"]["Select"]["having"]
    if having is not None:
        form = "__a IS NOT TRUE OR __b" if of_all else "__a IS TRUE AND __b"
        compared = syntax.filled(form, a=_value(query, having), b=compared)
    return {"Nested": compared}


def _exists(found: dict[str, Any], scope: SelectScope, types: Types) -> Tree | None:
    query = found["subquery"]
    if not _counts(query, scope, types):
        if ordering.skips(query):
            _check_limit(query, scope, types)
        return None
    having = query["body"]["Select"]["having"]
    if having is None:
        return syntax.filled("1 = 0" if found["negated"] else "1 = 1")
    sign = "IS NOT TRUE" if found["negated"] else "IS TRUE"
    return {"Nested": syntax.filled(f"__a {sign}", a=_value(query, having))}


def _value(query: Tree, having: Tree) -> Tree:
    """Return the value of HAVING for the only row of an aggregate, as a scalar subquery."""
    select = {
        **query["body"]["Select"], "having": None, "projection": [{"UnnamedExpr": having}]
    }  # fmt: skip
    return {"Subquery": {**syntax.copied(query), "body": {"Select": syntax.copied(select)}}}


def _counts(query: Tree, scope: SelectScope, types: Types) -> bool:
    """Return whether a subquery is correlated and aggregates all of its rows to one."""
    select = query["body"].get("Select")
    if select is None or query["limit_clause"] or query["fetch"]:
        return False
    inner = SelectScope(select, query, None, None, False)
    aggregates = scopes.has_aggregate([select["projection"], select["having"]])
    return aggregates and not scopes.is_grouped(inner) and not types.can_stand_alone(query, scope)


def _check_limit(query: Tree, scope: SelectScope, types: Types) -> None:
    if (query["limit_clause"] or query["fetch"]) and not types.can_stand_alone(query, scope):
        raise InvalidQueryError(
            "LIMIT and OFFSET in a correlated subquery, which names columns of the outer query, "
            "are not supported: the engine would apply them to all outer rows together; number "
            "rows with row_number() OVER (PARTITION BY ...) and compare the number"
        )


def _three_valued(found: dict[str, object], scope: SelectScope, types: Types) -> Tree:
    query = found["subquery"]
    if _is_of_constants(found, scope, types):
        plain = _found({**found, "subquery": syntax.copied(query)})
    else:
        plain = {"InSubquery": {**found, "negated": False}}
    if types.can_stand_alone(query, scope):
        nulls = syntax.filled(_ANY_NULL)
        # The subquery may have such parts, too.
        derived = next(each for each in syntax.everything(nulls) if "Derived" in each)
        derived["Derived"]["subquery"] = syntax.copied(query)
    else:
        nulls = _correlated_nulls(query)
    rows = {"Exists": {"subquery": syntax.copied(query), "negated": False}}
    yes, no = ("false", "true") if found["negated"] else ("true", "false")
    return {"Nested": syntax.filled(
        _THREE_VALUED, found=plain, nulls=nulls, rows=rows, x=found["expr"],
        yes=syntax.filled(yes), no=syntax.filled(no),
    )}  # fmt: skip


def _is_of_constants(found: dict[str, object], scope: SelectScope, types: Types) -> bool:
    """Return whether an IN looks for a value of constants in a subquery that stands alone."""
    has_others = any(syntax.columns(found["expr"])) or scopes.is_costly(found["expr"])
    return not has_others and types.can_stand_alone(found["subquery"], scope)


def _found(found: dict[str, object]) -> Tree:
    """Return whether a constant is among the rows of a subquery.

    From IN, the engine makes `2 = k`, which it takes for a contradiction of `k = 2` in the
    subquery.
    """
    exists = syntax.filled(_ANY_EQUAL, x=found["expr"])
    derived = next(each for each in syntax.everything(exists) if "Derived" in each)
    derived["Derived"]["subquery"] = found["subquery"]
    return exists


def _correlated_nulls(query: Tree) -> Tree:
    copied = syntax.copied(query)
    select = copied["body"].get("Select")
    is_plain = (
        select is not None
        and len(select["projection"]) == 1
        and not scopes.has_aggregate([select["projection"], select["having"]])
        and not scopes.is_grouped(SelectScope(select, copied, None, None, False))
        and select["qualify"] is None
    )
    (item,) = select["projection"] if is_plain else (None,)
    value = item and (item.get("UnnamedExpr") or item.get("ExprWithAlias", {}).get("expr"))
    if value is None:
        raise InvalidQueryError(
            "IN with a subquery of this form is not supported under NOT, OR, IS NULL, CASE or in a "
            "function: the engine would treat NULL as false; use EXISTS, as in "
            "EXISTS (SELECT 1 FROM ... WHERE column = x)"
        )
    is_null = syntax.filled("__a IS NULL", a=value)
    old = select["selection"]
    select["selection"] = is_null if old is None else syntax.filled(
        "__a AND __b", a=old, b=is_null
    )  # fmt: skip
    return {"Exists": {"subquery": copied, "negated": False}}
