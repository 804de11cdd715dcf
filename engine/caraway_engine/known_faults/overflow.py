"""Guards integer arithmetic, because DataFusion 55 wraps around silently on overflow.

`+`, `-` and `*` on integers are guarded unless form and type rule out an overflow. A guard is a
cheap test per row. A row that may overflow is computed exactly as DECIMAL and cast back. The cast
fails if the number does not fit. `sums` guards aggregates. In keys by which rows are sorted, all
rows are computed so: DataFusion 55 fails to plan a sort by a comparison of computed numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

import pyarrow as pa

from caraway_engine.known_faults import ranges, scopes, sums, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.ranges import Range
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_SIGNS = {"Plus": "+", "Minus": "-", "Multiply": "*"}
_SQL_TYPES = {
    pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INT", pa.int64(): "BIGINT",
    pa.uint8(): "TINYINT UNSIGNED", pa.uint16(): "SMALLINT UNSIGNED", pa.uint32(): "INT UNSIGNED",
    pa.uint64(): "BIGINT UNSIGNED",
}  # fmt: skip
_INT64, _UINT64 = Range(-(2**63), 2**63 - 1), Range(0, 2**64 - 1)
# Below these limits, the product of doubles proves that the integer product fits.
_SAFE_PRODUCT = {pa.int64(): "9.2e18", pa.uint64(): "1.84e19"}
_EXACT = "CAST(CAST(__a AS DECIMAL(20, 0)) {sign} CAST(__b AS DECIMAL(20, 0)) AS {type})"
_WIDER = "CAST(CAST(__a AS BIGINT) {sign} CAST(__b AS BIGINT) AS {type})"
_GUARDED = "CASE WHEN {test} THEN {exact} ELSE __a {sign} __b END"
_TESTS = {
    ("Plus", pa.int64()): "(__a + __b < __a) <> (__b < 0)",
    ("Minus", pa.int64()): "(__a - __b > __a) <> (__b < 0)",
    ("Plus", pa.uint64()): "__a + __b < __a",
    ("Minus", pa.uint64()): "__b > __a",
}
_MOST_REPEATED = 2
"""A test repeats its operands two or three times, so four levels would multiply one by 256."""
_ADDING = ("Plus", "Minus")
_NEGATED = "CAST(0 - CAST(__a AS DECIMAL(20, 0)) AS {type})"


def guard(scope: SelectScope, types: Types) -> bool:
    """Guard the arithmetic of a SELECT; return whether there was any to guard."""
    arithmetic = _Arithmetic(scope, types)
    return arithmetic.guard()


def candidates(scope: SelectScope) -> list[Tree]:
    """Return the expressions whose types decide what can overflow."""
    trees = [each for each in scope.expressions() if _computes(each)]
    return [each for node in trees for each in (node, *_operands(node))]


class _Arithmetic:
    """The arithmetic of a SELECT, with the types of all operands."""

    def __init__(self, scope: SelectScope, types: Types) -> None:
        self._scope = scope
        self._found = [each for each in scope.expressions() if _computes(each)]
        # A key has to stay equal to the expression of GROUP BY that it repeats.
        sorting = () if scopes.is_grouped(scope) else scope.sorting()
        self._sorting = set(map(id, sorting))
        types.types_of(scope, candidates(scope))

    def guard(self) -> bool:
        """Replace the arithmetic that may overflow; return whether there was any."""
        guards = [(each, self._guarded(each)) for each in self._found]
        for node, guarded in guards:
            if guarded is not None:
                syntax.replace(node, _wrapped(node, guarded))
        return any(guarded is not None for _, guarded in guards)

    def _type(self, expression: Tree) -> pa.DataType | None:
        return self._scope.types.get(id(expression))

    def _guarded(self, node: Tree) -> Callable[[Tree], Tree] | None:
        """Return a function that guards a copy of the node, or None if it cannot overflow."""
        type_ = self._type(node)
        if syntax.kind(node) == "Function":
            return sums.guarded(node, type_, self._type)
        whole = ranges.of_type(type_)
        # Decimals fail above 1.7e38. Between 1e38 and that limit they have 39 digits and are
        # correct.
        if whole is None or type_ not in _SQL_TYPES:
            return None
        if syntax.kind(node) == "UnaryOp":
            return self._negation(node, type_, whole)
        operation = node["BinaryOp"]
        left, right = (ranges.of(operation[side], self._type) for side in ("left", "right"))
        if left is None or right is None:
            return None
        if ranges.combined(operation["op"], left, right).fits(whole):
            return None
        if _is_chained(operation) and operation["op"] in (*_ADDING, "Multiply"):
            signs = _ADDING if operation["op"] in _ADDING else ("Multiply",)
            terms = list(self._terms(node, type_, signs))
            return lambda _copy: _computed(terms, type_)
        is_exact = id(node) in self._sorting
        text = _text(operation, type_, right, left, is_exact=is_exact)
        return lambda copy: syntax.filled(
            text, a=copy["BinaryOp"]["left"], b=copy["BinaryOp"]["right"]
        )

    def _terms(
        self, node: Tree, type_: pa.DataType, signs: Sequence[str]
    ) -> Iterator[tuple[Tree, str]]:
        """Yield the terms of a chain of `+` and `-`, or of `*`, each with its sign."""
        waiting = [(node, signs[0])]
        while waiting:
            each, sign = waiting.pop()
            inner = syntax.unnested(each)
            operation = inner.get("BinaryOp") if self._type(inner) == type_ else None
            if operation is None or operation["op"] not in signs:
                yield each, sign
                continue
            right = signs[0] if sign == operation["op"] else signs[-1]
            waiting += [(operation["right"], right), (operation["left"], sign)]

    def _negation(
        self, node: Tree, type_: pa.DataType, whole: Range
    ) -> Callable[[Tree], Tree] | None:
        inner = ranges.of(node["UnaryOp"]["expr"], self._type)
        if inner is None or Range(-inner.most, -inner.least).fits(whole):
            return None
        text = _NEGATED.format(type=_SQL_TYPES[type_])
        is_exact = id(node) in self._sorting or scopes.is_costly(node)
        if type_ == pa.int64() and not is_exact:
            text = f"CASE WHEN __a < -9223372036854775807 THEN {text} ELSE -__a END"
        return lambda copy: syntax.filled(text, a=copy["UnaryOp"]["expr"])


def _computes(tree: Tree) -> bool:
    match syntax.kind(tree):
        case "BinaryOp":
            return tree["BinaryOp"]["op"] in _SIGNS and not all(
                syntax.kind(tree["BinaryOp"][side]) == "Interval" for side in ("left", "right")
            )
        case "UnaryOp":
            return tree["UnaryOp"]["op"] == "Minus" and syntax.number(tree) is None
        case "Function":
            return sums.is_one(tree)
    return False


def _operands(node: Tree) -> list[Tree]:
    match syntax.kind(node):
        case "BinaryOp":
            sides = [node["BinaryOp"]["left"], node["BinaryOp"]["right"]]
        case "UnaryOp":
            sides = [node["UnaryOp"]["expr"]]
        case _:
            sides = syntax.arguments(node)
    whole = [one for side in sides for one in (side, syntax.unnested(side))]
    return [each for each in whole if syntax.number(each) is None]


def _text(operation: Tree, type_: pa.DataType, right: Range, left: Range, *, is_exact: bool) -> str:
    op, sign, name = operation["op"], _SIGNS[operation["op"]], _SQL_TYPES[type_]
    exact = _EXACT.format(sign=sign, type=name)
    if type_.bit_width < 64:
        wide = ranges.combined(op, left, right)
        return _WIDER.format(sign=sign, type=name) if wide.fits(_INT64) else exact
    if is_exact or _is_chained(operation) or scopes.is_costly(operation):
        return exact
    if right.least == right.most and type_ == pa.int64():
        test = _constant_test(op, right.least, "__a")
    elif left.least == left.most and type_ == pa.int64() and op != "Minus":
        test = _constant_test(op, left.least, "__b")
    elif op == "Multiply":
        test = f"abs(CAST(__a AS DOUBLE) * CAST(__b AS DOUBLE)) >= {_SAFE_PRODUCT[type_]}"
    else:
        test = _TESTS[op, type_]
    return _GUARDED.format(test=test, exact=exact, sign=sign)


def _computed(terms: Sequence[tuple[Tree, str]], type_: pa.DataType) -> Tree:
    """Add up or multiply any number of terms exactly, without parentheses for each.

    The engine's parser allows 47 levels, and takes seconds to refuse a few more.
    """
    tree = _decimal(terms[0][0])
    for term, sign in terms[1:]:
        tree = {"BinaryOp": {"left": tree, "op": sign, "right": _decimal(term)}}
    return syntax.filled(f"CAST(__a AS {_SQL_TYPES[type_]})", a=tree)


def _decimal(term: Tree) -> Tree:
    return syntax.filled("CAST(__a AS DECIMAL(20, 0))", a=term)


def _is_chained(operation: Tree) -> bool:
    """Return whether an operand contains so much arithmetic that a test must not repeat it."""
    computed = filter(_computes, chain.from_iterable(map(syntax.inside, operation.values())))
    return next(islice(computed, _MOST_REPEATED, None), None) is not None


def _constant_test(op: str, constant: int, other: str) -> str:
    """Return the test for arithmetic with a constant: one comparison, or two."""
    if op == "Multiply":
        limit = _INT64.most // abs(constant)
        return f"{other} > {limit} OR {other} < -{limit}"
    added = constant if op == "Plus" else -constant
    if added >= 0:
        return f"{other} > {_INT64.most - added}"
    # The smallest BIGINT cannot be written as a literal.
    return f"{other} < -{_INT64.most + added + 1}"


def _wrapped(node: Tree, guarded: Callable[[Tree], Tree]) -> Tree:
    """Return the guarded form in parentheses, because it replaces an operand."""
    return {"Nested": guarded(dict(node))}
