"""Keeps lists of values apart, which DataFusion 55 merges as if there were no NULL.

For the engine, `k IN (1) AND k IN (2)` is false, and `k NOT IN (1) OR k NOT IN (2)` is true, also
where `k` is NULL. It takes `k = 1 OR k = 2`, and ANY and array_has() of constants, for lists as
well, and lists with NULL for lists without. It merges lists only if they test the same expression.
So each list gets an expression of its own.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_LISTS = re.compile(
    r"\b(?:in|any|some|all|array_has|list_has|array_contains|list_contains)\b", re.IGNORECASE
)
_CHAINS = re.compile(r"\bor\b|\bnot\s*\(", re.IGNORECASE)
"""Comparisons become lists if OR connects them, or AND below NOT."""
_INNER_DEPTH, _VIEW_DEPTH = 2, 5
"""Lists of subqueries and views are wrapped so many times more than others, which may read them."""
_QUANTIFIED = ("AnyOp", "AllOp")
_HAS = frozenset({"array_has", "list_has", "array_contains", "list_contains"})
_LOOSE = ("And", "Or")
_EQUAL = ("Eq", "NotEq")


@dataclass(frozen=True, slots=True)
class _ListTest:
    """A test of a value, which is written once for each comparison with a constant.

    A merge of tests that are `exact` is right: false and NULL are equivalent there, and none is
    negated. A test is `exposed` if its result may become an operand of AND and OR elsewhere.
    """

    places: tuple[Tree, ...]
    exact: bool
    exposed: bool


def may_apply(words: str, *, is_view: bool) -> bool:
    """Return whether the text of a statement, without its comments, may have such lists."""
    return bool(_LISTS.search(words)) or len(_CHAINS.findall(words)) > (not is_view)


def mend(statement: Tree, words: str, *, is_view: bool) -> bool:
    """Give each list that may be merged a value of its own to test; return whether one may be."""
    if not may_apply(words, is_view=is_view):
        return False
    is_changed = False
    # By the text of each expression that others may read: the lists wrapped up to it.
    others: dict[str, int] = {}
    for scope in scopes.scopes(statement):
        for root in _conditions(scope):
            is_changed |= _part(list(_tests(root, True, False)), 0)
        is_read = is_view or not scope.is_top
        for root in _values(scope):
            tests = list(_tests(root, False, is_read))
            if any(each.exposed for each in tests):
                depth = others.setdefault(_text(root), sum(others.values()) + len(tests))
                _wrap(tests, (_VIEW_DEPTH if is_view else _INNER_DEPTH) + depth - len(tests))
                is_changed = True
            else:
                is_changed |= _part(tests, 0)
    return is_changed


def _conditions(scope: SelectScope) -> Iterator[Tree]:
    for join in scope.joins():
        yield from scopes.on(join)
    for key in ("selection", "having", "qualify"):
        if scope.select[key] is not None:
            yield scope.select[key]


def _values(scope: SelectScope) -> Iterator[Tree]:
    for item in scope.select["projection"]:
        yield item.get("UnnamedExpr") or item.get("ExprWithAlias", {}).get("expr")
    yield from scopes.groups(scope)
    for key in scope.sort_keys():
        yield key["expr"]


def _part(tests: Sequence[_ListTest], depth: int) -> bool:
    """Wrap the lists of one expression that would be merged wrongly."""
    names = [_name(each.places[0]) for each in tests]
    wrong = [
        each
        for each, name in zip(tests, names, strict=True)
        if not each.exact and names.count(name) > 1
    ]
    _wrap(wrong, depth)
    return bool(wrong)


def _wrap(tests: Sequence[_ListTest], depth: int) -> None:
    for more, test in enumerate(tests, 1):
        for place in test.places:
            for _ in range(depth + more):
                syntax.replace(place, syntax.filled(syntax.OPAQUE, a=dict(place)))


def _tests(tree: Tree, exact: bool, exposed: bool) -> Iterator[_ListTest]:
    """Yield the lists of an expression, without those of its subqueries."""
    match syntax.kind(tree):
        case "Nested":
            yield from _tests(tree["Nested"], exact, exposed)
        case "BinaryOp" if tree["BinaryOp"]["op"] in _LOOSE:
            chain = list(_chain(tree, tree["BinaryOp"]["op"]))
            yield from _compared(chain, exact, exposed)
            for each in chain:
                yield from _tests(each, exact, exposed)
        case "UnaryOp" if tree["UnaryOp"]["op"] == "Not":
            yield from _tests(tree["UnaryOp"]["expr"], False, exposed)
        case _:
            if (tested := _tested(tree)) is not None:
                yield _ListTest((tested,), exact and _is_exact(tree), exposed)
            yield from _inside(tree)


def _inside(tree: Tree) -> Iterator[_ListTest]:
    """Yield the lists of the parts of an expression, whose results are not its own."""
    parts = tree.values() if isinstance(tree, dict) else tree
    for part in parts if isinstance(tree, dict | list | tuple) else ():
        if isinstance(part, dict) and not syntax.is_query(part):
            yield from _tests(part, False, False)
        elif isinstance(part, list | tuple):
            yield from _inside(part)


def _tested(tree: Tree) -> Tree | None:
    """Return what an expression looks for in a list, or None if it has no list."""
    kind = syntax.kind(tree)
    if kind == "InList":
        found = tree["InList"]
        is_row = syntax.kind(syntax.unnested(found["expr"])) == "Tuple"
        return found["expr"] if found["list"] and not is_row else None
    if kind in _QUANTIFIED:
        is_query = syntax.kind(syntax.unnested(syntax.body(tree)["right"])) == "Subquery"
        return None if is_query else syntax.body(tree)["left"]
    if syntax.function_name(tree) in _HAS and len(given := syntax.arguments(tree)) == 2:
        return given[1]
    return None


def _is_exact(tree: Tree) -> bool:
    """Return whether an expression finds a value among constants."""
    found = tree.get("InList")
    return bool(found) and not found["negated"] and all(map(syntax.is_constant, found["list"]))


def _chain(tree: Tree, operator: str) -> Iterator[Tree]:
    """Yield the operands of ANDs, or of ORs, that are connected."""
    waiting = [tree]
    while waiting:
        each = syntax.unnested(waiting.pop())
        if syntax.kind(each) == "BinaryOp" and each["BinaryOp"]["op"] == operator:
            waiting += [each["BinaryOp"]["right"], each["BinaryOp"]["left"]]
        else:
            yield each


def _compared(chain: Sequence[Tree], exact: bool, exposed: bool) -> Iterator[_ListTest]:
    """Yield a list for each value that is compared with several constants."""
    places: dict[str, list[Tree]] = {}
    for each in chain:
        if (place := _of_constant(each)) is not None:
            places.setdefault(_name(place), []).append(place)
    for found in places.values():
        if len(found) > 1:
            yield _ListTest(tuple(found), exact, exposed)


def _of_constant(tree: Tree) -> Tree | None:
    """Return what an expression compares with a constant, or None."""
    if syntax.kind(tree) != "BinaryOp" or tree["BinaryOp"]["op"] not in _EQUAL:
        return None
    left, right = tree["BinaryOp"]["left"], tree["BinaryOp"]["right"]
    if syntax.is_constant(syntax.unnested(right)):
        return left
    return right if syntax.is_constant(syntax.unnested(left)) else None


def _name(tested: Tree) -> str:
    """Return the name of a tested column without its table, or the text of an expression."""
    inner = syntax.unnested(tested)
    match syntax.kind(inner):
        case "Identifier":
            return syntax.spelled(inner["Identifier"])
        case "CompoundIdentifier":
            return syntax.spelled(inner["CompoundIdentifier"][-1])
    return _text(inner)


def _text(expression: Tree) -> str:
    return syntax.select([{"UnnamedExpr": expression}], [], None)
