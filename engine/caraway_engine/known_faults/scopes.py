"""Finds the SELECTs of a statement, with their CTEs."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.sqltext import builtin_functions
from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.syntax import Tree

AGGREGATES = frozenset(
    {"sum", "count", "min", "max", "avg", "mean", "bool_and", "bool_or", "bit_and", "bit_or",
     "bit_xor", "stddev", "stddev_pop", "stddev_samp", "var", "var_pop", "var_samp", "var_sample",
     "var_population", "covar", "covar_pop", "covar_samp", "corr", "median", "approx_distinct",
     "approx_median", "approx_percentile_cont", "approx_percentile_cont_with_weight",
     "percentile_cont", "quantile_cont", "array_agg",
     "string_agg", "first_value", "last_value", "nth_value", "grouping", "any_value",
     "regr_slope", "regr_intercept", "regr_count", "regr_r2", "regr_avgx", "regr_avgy", "regr_sxx",
     "regr_syy", "regr_sxy"}
)  # fmt: skip
VOLATILE = builtin_functions.RANDOM


_SORTED = ("partition_by", "order_by")
"""The parts of the specification of a window that sort its rows."""

GROUPING_SETS = ("Rollup", "Cube", "GroupingSets")


@dataclass(slots=True)
class SelectScope:
    """A SELECT, the query that it is the body of, and the outer queries.

    `with_` has the CTEs that are in scope. `is_top` means that its columns are the statement's
    output.
    """

    select: Tree
    query: Tree
    with_: Tree
    parent: "SelectScope | None"
    is_top: bool
    types: dict[int, pa.DataType | None] = field(default_factory=dict)
    """Types of expressions by identity, so that a rewritten expression keeps its original type."""
    _expressions: list[Tree] | None = None
    _sorted: dict[int, Tree] | None = None
    _held: list[Tree] = field(default_factory=list)

    def expressions(self) -> list[Tree]:
        """Return the expressions of the SELECT and of its ORDER BY, as first seen.

        Rewritten expressions are changed in place.
        """
        if self._expressions is None:
            self._expressions = list(self._found())
        return self._expressions

    def _found(self) -> Iterator[Tree]:
        yield from syntax.inside(self.select["projection"])
        yield from self._conditions()
        for key in ("selection", "having", "qualify", "group_by", "named_window", "distinct"):
            yield from syntax.inside(self.select[key])
        if self.is_alone():
            yield from syntax.inside(self.query["order_by"])

    def add(self, expression: Tree, type_: pa.DataType | None) -> None:
        """Add an expression that took the place of one, which now contains it."""
        self.expressions().append(expression)
        self.note(expression, type_)

    def note(self, expression: Tree, type_: pa.DataType | None) -> None:
        """Record the type of an expression, which is kept: another could get its identity."""
        self.types[id(expression)] = type_
        self._held.append(expression)

    def over_from(self, expression: Tree) -> Tree:
        """Return an expression over the columns of FROM.

        In ORDER BY, the names of output columns are replaced with the values that they have.
        """
        if self._sorted is None:
            parts = syntax.inside(self.query["order_by"]) if self.is_alone() else ()
            self._sorted = {id(each): each for each in parts}
        is_sorted = self._sorted.get(id(expression)) is expression
        return _over(expression, aliases(self.select["projection"])) if is_sorted else expression

    def sorting(self) -> Iterator[Tree]:
        """Yield the expressions of keys by which rows are sorted, for windows, too."""
        orders = [self.query["order_by"]] if self.is_alone() else []
        windows = (each for each in self.expressions() if "WindowSpec" in each)
        specs = [each["WindowSpec"] for each in windows]
        for key in (*orders, *(spec[part] for spec in specs for part in _SORTED)):
            yield from syntax.inside(key)

    def sort_keys(self) -> list[Tree]:
        """Return the keys of ORDER BY, if the SELECT is all of its query."""
        order = self.query["order_by"] if self.is_alone() else None
        return list(order["kind"].get("Expressions", ())) if order else []

    def is_alone(self) -> bool:
        """Return whether the SELECT is all of its query, and not a part of a set operation."""
        return self.query["body"].get("Select") is self.select

    def joins(self) -> Iterator[Tree]:
        """Yield the joins of the FROM, including those in parentheses."""
        return joins_of(self.select["from"])

    def _conditions(self) -> Iterator[Tree]:
        for join in self.joins():
            yield from syntax.inside(on(join))


def joins_of(from_: list[Tree]) -> Iterator[Tree]:
    """Yield the joins of FROM items, including those in parentheses."""
    waiting = [*from_]
    while waiting:
        each = waiting.pop(0)
        for relation in (each["relation"], *(join["relation"] for join in each["joins"])):
            if "NestedJoin" in relation:
                waiting.append(relation["NestedJoin"]["table_with_joins"])
        yield from each["joins"]


def on(join: Tree) -> list[Tree]:
    """Return the condition of a join as a list; empty without ON."""
    operator = join["join_operator"]
    if not isinstance(operator, dict) or syntax.kind(syntax.body(operator)) != "On":
        return []
    return [syntax.body(operator)["On"]]


def scopes(statement: Tree) -> Iterator[SelectScope]:
    """Yield every SELECT of a statement, outer ones first.

    An UPDATE or DELETE is a SELECT of its new values over its tables, and so are rows of VALUES.
    """
    changed = _of_change(statement)
    if changed is not None:
        yield changed
        yield from _below(changed)
        return
    for query in _topmost(statement):
        yield from _of_query(query, None, None, True)


def _of_change(statement: Tree) -> SelectScope | None:
    match syntax.kind(statement):
        case "Update":
            update = statement["Update"]
            values = [each["value"] for each in update["assignments"]]
            from_ = [update["table"], *(syntax.body(update["from"]) if update["from"] else ())]
            return _computing(values, from_, update["selection"])
        case "Delete":
            delete = statement["Delete"]
            from_ = [*syntax.body(delete["from"]), *(delete["using"] or ())]
            return _computing([], from_, delete["selection"])
    return None


def _computing(
    values: Sequence[Tree], from_: list[Tree], condition: Tree, with_: Tree = None
) -> SelectScope:
    """Return a SELECT of values. What is rewritten there, is rewritten where the values are."""
    items = [named(each, f"c{number}") for number, each in enumerate(values)]
    query = syntax.query({"Select": syntax.selected(items, from_, condition)})
    return SelectScope(query["body"]["Select"], query, with_, None, False)


def set_operations(statement: Tree) -> Iterator[tuple[Tree, Tree]]:
    """Yield the set operations of a statement with the CTEs in scope, inner ones first."""
    for query in _topmost(statement):
        yield from _sets_of_query(query, None)


def _sets_of_query(query: Tree, with_: Tree) -> Iterator[tuple[Tree, Tree]]:
    inner_queries, with_ = _of_ctes(query, with_)
    for inner, tree in inner_queries:
        yield from _sets_of_query(inner, tree)
    yield from _sets_of_body(query["body"], with_)
    for inner in _topmost(query["order_by"]):
        yield from _sets_of_query(inner, with_)


def _sets_of_body(tree: Tree, with_: Tree) -> Iterator[tuple[Tree, Tree]]:
    if "SetOperation" in tree:
        for side in ("left", "right"):
            yield from _sets_of_body(tree["SetOperation"][side], with_)
        yield tree, with_
    elif "Query" in tree:
        yield from _sets_of_query(tree["Query"], with_)
    elif "Select" in tree:
        for query in _topmost(tree["Select"]):
            yield from _sets_of_query(query, with_)


def set_queries(statement: Tree) -> Iterator[tuple[Tree, Tree]]:
    """Yield the queries whose bodies are set operations, with the CTEs in scope."""
    for query in _topmost(statement):
        yield from _set_queries(query, None)


def _set_queries(query: Tree, with_: Tree) -> Iterator[tuple[Tree, Tree]]:
    inner_queries, with_ = _of_ctes(query, with_)
    for inner, tree in inner_queries:
        yield from _set_queries(inner, tree)
    if "SetOperation" in query["body"] or "Query" in query["body"]:
        yield query, with_
    for inner in _topmost([query["body"], query["order_by"]]):
        yield from _set_queries(inner, with_)


def _topmost(tree: Tree) -> Iterator[Tree]:
    """Yield the queries of a tree that are not inside another of its queries."""
    for each in syntax.inside(tree):
        if syntax.is_query(each):
            yield each


def _of_query(
    query: Tree, with_: Tree, parent: SelectScope | None, is_top: bool
) -> Iterator[SelectScope]:
    inner_queries, with_ = _of_ctes(query, with_)
    for inner, tree in inner_queries:
        yield from _of_query(inner, tree, None, False)
    yield from _of_body(query["body"], query, with_, parent, is_top)


def _of_ctes(query: Tree, with_: Tree) -> tuple[list[tuple[Tree, Tree]], Tree]:
    """Return the query of each CTE with the CTEs in scope inside it, and those in scope after."""
    found, own = [], query["with"]
    for cte in own["cte_tables"] if own else ():
        after = combined_with(with_, {**own, "cte_tables": [cte]})
        found.append((cte["query"], after if own["recursive"] else with_))
        with_ = after
    return found, with_


def combined_with(outer: Tree, own: Tree) -> Tree:
    """Add the CTEs of a query to those in scope.

    Only under RECURSIVE, a CTE that reads its own name reads itself. Otherwise it is a table.
    """
    if outer is None or own is None:
        return outer or own
    tables = [*outer["cte_tables"], *own["cte_tables"]]
    return {**own, "cte_tables": tables, "recursive": outer["recursive"] or own["recursive"]}


def _of_body(
    tree: Tree, query: Tree, with_: Tree, parent: SelectScope | None, is_top: bool
) -> Iterator[SelectScope]:
    if "SetOperation" in tree:
        for side in ("left", "right"):
            yield from _of_body(tree["SetOperation"][side], query, with_, parent, is_top)
    elif "Query" in tree:
        yield from _of_query(tree["Query"], with_, parent, is_top)
    elif "Values" in tree:
        values = [each for row in tree["Values"]["rows"] for each in row]
        computed = [each for each in values if not syntax.is_constant(each)]
        if computed:
            scope = _computing(computed, [], None, with_)
            scope.parent = parent
            yield scope
            yield from _below(scope)
    elif "Select" in tree:
        scope = SelectScope(tree["Select"], query, with_, parent, is_top)
        yield scope
        yield from _below(scope)


def _below(scope: SelectScope) -> Iterator[SelectScope]:
    """Yield the SELECTs in FROM and in expressions.

    Those in FROM see no outer columns, except after LATERAL.
    """
    in_from = list(_topmost(scope.select["from"]))
    lateral = {
        id(each["Derived"]["subquery"])
        for each in syntax.inside(scope.select["from"])
        if "Derived" in each and each["Derived"]["lateral"]
    }
    for query in in_from:
        yield from _of_query(query, scope.with_, scope if id(query) in lateral else None, False)
    for query in _topmost([scope.select, scope.query["order_by"]]):
        if not any(query is each for each in in_from):
            yield from _of_query(query, scope.with_, scope, False)


def read(tree: Tree) -> Iterator[str]:
    """Yield the unqualified names that a tree reads from, once per read."""
    for each in syntax.everything(tree):
        table = each.get("Table")
        if isinstance(table, dict) and len(table["name"]) == 1 and "Identifier" in table["name"][0]:
            yield syntax.spelled(table["name"][0]["Identifier"])


def has_aggregate(expression: Tree) -> bool:
    """Return whether an expression aggregates rows, other than in a window."""
    for each in syntax.inside(expression):
        name = syntax.function_name(each)
        if name in AGGREGATES and not syntax.is_windowed(each):
            return True
    return False


def is_volatile(expression: Tree) -> bool:
    """Return whether an expression calls random() or uuid()."""
    return any(syntax.function_name(each) in VOLATILE for each in syntax.everything(expression))


def has_subquery(expression: Tree) -> bool:
    """Return whether an expression contains a subquery."""
    return any(map(syntax.is_query, syntax.inside(expression)))


def is_costly(expression: Tree) -> bool:
    """Return whether an expression must not be duplicated."""
    return has_subquery(expression) or is_volatile(expression)


def grouping_sets(scope: SelectScope) -> list[Tree]:
    """Return the ROLLUP, CUBE and GROUPING SETS of GROUP BY."""
    return [each for each in groups(scope) if syntax.kind(each) in GROUPING_SETS]


def groups(scope: SelectScope) -> list[Tree]:
    """Return the GROUP BY expressions; empty for other forms, such as GROUP BY ALL."""
    group_by = scope.select["group_by"]
    return list(group_by["Expressions"][0]) if "Expressions" in group_by else []


def is_grouped(scope: SelectScope) -> bool:
    """Return whether a SELECT has a GROUP BY."""
    return bool(groups(scope)) or "Expressions" not in scope.select["group_by"]


def group_by(scope: SelectScope, columns: Callable[[], Sequence[str] | None]) -> Tree:
    """Return GROUP BY with positions and aliases resolved, because a probe has other columns.

    A column of FROM, which `columns` returns, takes precedence over an alias.
    """
    tree = copy.copy(scope.select["group_by"])
    if "Expressions" not in tree:
        return None
    tree["Expressions"] = [
        [_grouped(each, scope.select["projection"], columns) for each in groups(scope)],
        *tree["Expressions"][1:],
    ]
    return tree


def _grouped(
    expression: Tree, items: list[Tree], columns: Callable[[], Sequence[str] | None]
) -> Tree:
    place = syntax.position(expression)
    if place is not None and 0 < place <= len(items):
        item = items[place - 1]
        return item.get("UnnamedExpr") or item.get("ExprWithAlias", {}).get("expr") or expression
    if syntax.kind(expression) != "Identifier":
        return expression
    name = syntax.spelled(expression["Identifier"])
    value = aliases(items).get(name)
    return expression if value is None or name in (columns() or ()) else value


def aliases(items: list[Tree]) -> Mapping[str, Tree]:
    """Return the values of the aliases in a SELECT list."""
    named_ = [item["ExprWithAlias"] for item in items if "ExprWithAlias" in item]
    return {syntax.spelled(each["alias"]): each["expr"] for each in named_}


def _over(tree: Tree, values: Mapping[str, Tree]) -> Tree:
    """Return a tree with other values for some names; aggregates are of the columns of FROM."""
    if isinstance(tree, list):
        return [_over(each, values) for each in tree]
    if not isinstance(tree, dict) or syntax.is_query(tree) or _is_aggregate(tree):
        return tree
    if syntax.kind(tree) == "Identifier" and syntax.spelled(tree["Identifier"]) in values:
        return {"Nested": values[syntax.spelled(tree["Identifier"])]}
    return {key: part if key == "name" else _over(part, values) for key, part in tree.items()}


def _is_aggregate(tree: Tree) -> bool:
    return syntax.function_name(tree) in AGGREGATES


def named(expression: Tree, name: str) -> Tree:
    """Return an item of a SELECT: an expression with an alias."""
    return {"ExprWithAlias": {"expr": expression, "alias": syntax.identifier(name)}}
