"""Finds the columns that a SELECT names, and replaces them in all of its clauses."""

from collections.abc import Callable, Iterable, Iterator

from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_COLUMNS = ("Identifier", "CompoundIdentifier")


def named(tree: Tree) -> Iterator[Tree]:
    """Yield a copy of each column that a tree names."""
    for each in _columns(tree, into_aggregates=True):
        yield syntax.copied(each)


def spelling(column: Tree) -> list[str]:
    """Return the parts of a column's name, its own name last."""
    parts = syntax.body(column)
    return [syntax.spelled(each) for each in (parts if isinstance(parts, list) else [parts])]


def replace(scope: SelectScope, names: frozenset[str], form: Callable[[Tree], Tree]) -> bool:
    """Replace columns of these names by a form with a place for each; return whether any did."""
    columns = [each for each in _used(scope, names) if names.intersection(spelling(each))]
    for each in columns:
        syntax.replace(each, syntax.put(form(each), column=dict(each)))
    return bool(columns)


def _used(scope: SelectScope, names: frozenset[str]) -> list[Tree]:
    """Return the columns that a SELECT outputs, or groups or sorts by."""
    columns = list(outside_aggregates(scope.select["projection"]))
    aliases, shown = _own_names(scope)
    for key in ("group_by", "having", "qualify", "distinct"):
        # In these clauses a column takes precedence over an alias of the SELECT.
        columns += _not_named(outside_aggregates(scope.select[key]), aliases - names)
    if scope.is_alone():
        # In ORDER BY, the name of an output column is that column, which is already rewritten.
        ordered = list(outside_aggregates(scope.query["order_by"]))
        kept = [id(each) for each in _grouping_arguments(scope.query["order_by"])]
        columns += [each for each in ordered if id(each) in kept]
        columns += _not_named((each for each in ordered if id(each) not in kept), shown)
    return columns


def _grouping_arguments(tree: Tree) -> Iterator[Tree]:
    """Yield the columns in `grouping(...)`, which are always those of GROUP BY."""
    for each in syntax.inside(tree):
        if syntax.function_name(each) == "grouping":
            yield from outside_aggregates(syntax.arguments(each))


def _own_names(scope: SelectScope) -> tuple[set[str], set[str]]:
    """Return the aliases of computed columns, and the names of all output columns."""
    aliases, shown = set(), set()
    for item in scope.select["projection"]:
        value = item.get("UnnamedExpr") or item.get("ExprWithAlias", {}).get("expr")
        own = spelling(value)[-1] if syntax.kind(value) in _COLUMNS else None
        name = syntax.spelled(item["ExprWithAlias"]["alias"]) if "ExprWithAlias" in item else own
        if name is not None:
            shown.add(name)
            if name != own:
                aliases.add(name)
    return aliases, shown


def _not_named(columns: Iterable[Tree], names: set[str]) -> Iterator[Tree]:
    for each in columns:
        if syntax.kind(each) != "Identifier" or spelling(each)[0] not in names:
            yield each


def outside_aggregates(tree: Tree) -> Iterator[Tree]:
    """Yield the columns of a tree; within aggregates, only those of their ORDER BY."""
    return _columns(tree, into_aggregates=False)


def _columns(tree: Tree, *, into_aggregates: bool) -> Iterator[Tree]:
    waiting = [tree]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list | tuple):
            waiting += each
        if not isinstance(each, dict) or syntax.is_query(each) or "QualifiedWildcard" in each:
            continue
        if syntax.kind(each) in _COLUMNS:
            yield each
        elif syntax.kind(each) == "Function":
            waiting += _of_function(each, into_aggregates=into_aggregates)
        else:
            waiting += [part for key, part in each.items() if key not in ("alias", "data_type")]


def _of_function(call: Tree, *, into_aggregates: bool) -> list[Tree]:
    """Return the parts of a call that may name columns, without the function name."""
    function = call["Function"]
    is_aggregate = syntax.function_name(call) in scopes.AGGREGATES and not syntax.is_windowed(call)
    if into_aggregates or not is_aggregate or syntax.function_name(call) == "grouping":
        return [function["args"], function["filter"], function["over"], function["within_group"]]
    given = function["args"]
    clauses = given["List"]["clauses"] if syntax.kind(given) == "List" else []
    return [*clauses, function["within_group"]]
