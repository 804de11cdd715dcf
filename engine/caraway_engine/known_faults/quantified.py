"""Names the columns of subqueries in ANY, ALL and IN, which DataFusion 55 takes for outer ones.

It moves the comparison into the subquery. There, a column of an outer table becomes the one of an
inner table with the same name: `v > ALL (SELECT v FROM t)` over `t` compares each row of the
subquery with itself. So the column gets a name that no table has. In the condition of a join this
is not enough, because the comparison is moved further, below the name. So it becomes a part of
WHERE, where the engine also understands more subqueries.
"""

from collections.abc import Iterator

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import joining, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_VALUE = "__value"
_RENAMED = f"SELECT {_VALUE} FROM (SELECT 1) AS __subquery({_VALUE})"
_COMPARISONS = ("AnyOp", "AllOp")
_INNER = ("Inner", "Join", "CrossJoin")


def mend(scope: SelectScope, types: Types) -> bool:
    """Name the columns of subqueries in ANY, ALL and IN; return whether any had to be named.

    Raises:
        InvalidQueryError: the condition of an outer join has ANY or ALL.
    """
    is_moved = [_without_subqueries(scope, from_) for from_ in scope.select["from"]]
    is_named = [_name(each, scope, types) for each in _compared(scope)]
    return any(is_moved) or any(is_named)


def _compared(scope: SelectScope) -> Iterator[Tree]:
    for each in scope.expressions():
        if (query := _quantified(each)) is not None:
            yield query
        elif "InSubquery" in each and "Select" not in each["InSubquery"]["subquery"]["body"]:
            # The engine selects the first column of a UNION twice, and finds that ambiguous.
            yield each["InSubquery"]["subquery"]


def _quantified(tree: Tree) -> Tree | None:
    """Return the subquery of ANY or ALL, or None for other expressions."""
    if syntax.kind(tree) not in _COMPARISONS:
        return None
    right = syntax.unnested(syntax.body(tree)["right"])
    return right["Subquery"] if syntax.kind(right) == "Subquery" else None


def _name(query: Tree, scope: SelectScope, types: Types) -> bool:
    select = query["body"].get("Select")
    (item, *others) = select["projection"] if select else (None,)
    if item and "ExprWithAlias" in item and not others:
        return False
    # With DISTINCT, the engine looks for sort keys among the names of the output.
    if item and "UnnamedExpr" in item and not others and not select["distinct"]:
        syntax.replace(item, scopes.named(item["UnnamedExpr"], _VALUE))
        return True
    if not types.can_stand_alone(query, scope):
        return False
    (tree,) = syntax.parse(_RENAMED)
    derived = next(each for each in syntax.everything(tree) if "Derived" in each)
    derived["Derived"]["subquery"] = dict(query)
    syntax.replace(query, tree["Query"])
    return True


def _without_subqueries(scope: SelectScope, from_: Tree) -> bool:
    """Move subqueries from the conditions of inner joins to WHERE; return whether there are any.

    Raises:
        InvalidQueryError: one of the joins is an outer join, and there is ANY or ALL.
    """
    joins = list(scopes.joins_of([from_]))
    trees = [join for join in joins if scopes.has_subquery(scopes.on(join))]
    if not trees:
        return False
    if any(syntax.kind(each["join_operator"]) not in _INNER for each in joins):
        if any(_quantified(each) for join in trees for each in syntax.inside(scopes.on(join))):
            raise InvalidQueryError(
                "ANY and ALL with a subquery are not supported in the ON of joins among which is "
                "an outer join: the engine would compare the wrong columns; compare in WHERE, or "
                "in a subquery of FROM"
            )
        return False
    for join in trees:
        terms = list(joining.conjuncts(*scopes.on(join)))
        moved = [each for each in terms if scopes.has_subquery(each)]
        kept = [each for each in terms if not scopes.has_subquery(each)]
        syntax.body(join["join_operator"])["On"] = _all_of(kept)
        old = scope.select["selection"]
        scope.select["selection"] = _all_of(moved if old is None else [old, *moved])
    return True


def _all_of(terms: list[Tree]) -> Tree:
    tree = terms[0] if terms else syntax.filled("true")
    for each in terms[1:]:
        tree = syntax.filled("__a AND __b", a=tree, b=each)
    return tree
