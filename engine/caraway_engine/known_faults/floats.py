"""Works around errors of DataFusion 55 with NaN, infinities and negative zero.

Grouped `min` and `max` ignore NaN and infinities. Windows and IN lists treat 0.0 and -0.0 as
different. A sum over a moving frame stays NaN after an infinity has left it. Statistics of Parquet
files, which prune row groups, do not cover NaN.
"""

from collections.abc import Iterator

import pyarrow as pa

from caraway_engine.known_faults import columns, float_forms, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.float_forms import COMPARISONS, ONE_FORM, ONE_NAN, SQL_TYPES
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_LEAST = (
    "coalesce(__proper, CASE WHEN __infinite THEN CAST('inf' AS {type}) "
    "WHEN __nan THEN CAST('NaN' AS {type}) END)"
)
_GREATEST = (
    "CASE WHEN __nan THEN CAST('NaN' AS {type}) ELSE coalesce(__proper, "
    "CASE WHEN __infinite THEN CAST('-inf' AS {type}) END) END"
)
_PROPER = {
    "min": "CASE WHEN __a < CAST('inf' AS {type}) THEN __a END",
    "max": "CASE WHEN __a > CAST('-inf' AS {type}) AND NOT isnan(__a) THEN __a END",
}
_INFINITE = {"min": "__a = CAST('inf' AS {type})", "max": "__a = CAST('-inf' AS {type})"}
_MOVING_CONSTANT = "CAST(__a AS DOUBLE) * nullif(__n, 0)"
_CONSTANT_AVERAGE = "CASE WHEN __n > 0 THEN CAST(__a AS DOUBLE) END"
_MOVING = (
    "CASE WHEN __nan > 0 OR (__up > 0 AND __down > 0) THEN CAST('NaN' AS DOUBLE) "
    "WHEN __up > 0 THEN CAST('inf' AS DOUBLE) WHEN __down > 0 THEN CAST('-inf' AS DOUBLE) "
    "ELSE __rest END"
)
_COUNTED = {
    "nan": "CASE WHEN isnan(__a) THEN 1 END",
    "up": "CASE WHEN __a = CAST('inf' AS DOUBLE) THEN 1 END",
    "down": "CASE WHEN __a = CAST('-inf' AS DOUBLE) THEN 1 END",
}
_FINITE = "CASE WHEN abs(__a) < CAST('inf' AS DOUBLE) THEN __a END"
_ZERO_OF_TEXT = "CAST(__a AS DOUBLE) - CAST('-0' AS DOUBLE)"
_ZEROS = "+-0.eE "
# Returns its argument, and hides the column from pruning by statistics.
_HIDDEN_GROUP = "nanvl(__a, __a)"


def candidates(scope: SelectScope) -> list[Tree]:
    """Return the expressions whose types decide whether to rewrite anything."""
    trees: list[Tree] = []
    for each in scope.expressions():
        if _moves(each) or (_is_extreme(each) and scopes.is_grouped(scope)):
            trees += syntax.arguments(each)
        trees += _held_by_bits(each)
    return trees


def mend_extremes(scope: SelectScope, types: Types) -> bool:
    """Make grouped min and max respect NaN and infinities; return whether there were any."""
    if not scopes.is_grouped(scope):
        return False
    calls = [each for each in scope.expressions() if _is_extreme(each)]
    arguments = [syntax.arguments(each)[0] for each in calls]
    changes = [
        (call, _extreme(call, type_))
        for call, type_ in zip(calls, types.types_of(scope, arguments), strict=True)
        if type_ in SQL_TYPES
    ]
    return _replaced(changes)


def _is_extreme(tree: Tree) -> bool:
    is_one = syntax.function_name(tree) in _PROPER and len(syntax.arguments(tree)) == 1
    return is_one and not syntax.is_windowed(tree)


def _extreme(call: Tree, type_: pa.DataType) -> Tree:
    name, (value,) = syntax.function_name(call), syntax.arguments(call)
    sql_type = SQL_TYPES[type_]

    def of(text: str, function: str) -> Tree:
        argument = syntax.filled(text.format(type=sql_type), a=value)
        return syntax.with_argument(call, argument, function)

    text = _LEAST if name == "min" else _GREATEST
    return syntax.filled(
        text.format(type=sql_type),
        proper=of(_PROPER[name], name),
        infinite=of(_INFINITE[name], "bool_or"),
        nan=of("isnan(__a)", "bool_or"),
    )


def mend_zeros(scope: SelectScope, types: Types) -> bool:
    """Turn -0.0 into 0.0 in window keys, IN lists and constants that are compared.

    Returns whether there were any. The optimizer takes 0.0 and -0.0 for two values that a column
    cannot both have.
    """
    keys = [key for each in scope.expressions() for key in _held_by_bits(each)]
    changes = [
        (key, float_forms.filled(ONE_FORM, key, type_))
        for key, type_ in zip(keys, types.types_of(scope, keys), strict=True)
        if type_ in SQL_TYPES
    ]
    changed = {id(key) for key, _ in changes}
    for each in scope.expressions():
        if syntax.kind(each) == "InList" and id(each["InList"]["expr"]) in changed:
            changes += _listed(each["InList"]["list"], scope, types)
        elif syntax.kind(each) == "BinaryOp" and each["BinaryOp"]["op"] in COMPARISONS:
            sides = (each["BinaryOp"][side] for side in ("left", "right"))
            changes += [(side, zero) for side in sides if (zero := _negative_zero(side))]
    return _replaced(changes)


def _negative_zero(value: Tree) -> Tree | None:
    """Return the positive form of the literal -0.0, or None for all else."""
    inner = syntax.unnested(value)
    if syntax.kind(inner) != "UnaryOp" or inner["UnaryOp"]["op"] != "Minus":
        return None
    constant = syntax.unnested(inner["UnaryOp"]["expr"])
    is_zero = _is_plain_number(constant) and _may_be_zero(constant)
    return dict(constant) if is_zero else None


def _listed(values: list[Tree], scope: SelectScope, types: Types) -> Iterator[tuple[Tree, Tree]]:
    """Yield the values of a list that may be -0.0, with the forms that are 0.0."""
    trees = [each for each in values if _may_be_zero(each) and not _is_plain_number(each)]
    for value, type_ in zip(trees, types.types_of(scope, trees), strict=True):
        if type_ in SQL_TYPES:
            yield value, float_forms.filled(ONE_FORM, value, type_)
        elif syntax.kind(value) == "Value" and type_ is not None and pa.types.is_string(type_):
            yield value, syntax.filled(_ZERO_OF_TEXT, a=dict(value))


def _is_plain_number(value: Tree) -> bool:
    return syntax.kind(value) == "Value" and syntax.kind(value["Value"]["value"]) == "Number"


def _held_by_bits(tree: Tree) -> Iterator[Tree]:
    """Yield the expressions whose values are compared bit by bit."""
    if syntax.kind(tree) == "InList" and any(map(_may_be_zero, tree["InList"]["list"])):
        yield tree["InList"]["expr"]
    if isinstance(tree, dict) and "partition_by" in tree and "window_frame" in tree:
        yield from tree["partition_by"]
        yield from (each["expr"] for each in tree["order_by"])


def _may_be_zero(value: Tree) -> bool:
    # Lists may have thousands of values.
    if (constant := value.get("Value")) is None:
        inner = syntax.unnested(value)
        if syntax.kind(inner) != "Value":
            return syntax.kind(inner) != "TypedString"
        constant = inner["Value"]
    literal = constant["value"]
    if not isinstance(literal, dict):
        return False
    ((kind, text),) = literal.items()
    if kind == "Number":
        return float(text[0]) == 0
    # A text is compared with a float as the number that it has.
    return kind == "Placeholder" or (kind == "SingleQuotedString" and not text.strip(_ZEROS))


def mend_moving(scope: SelectScope, types: Types) -> bool:
    """Make moving sums and averages forget values that left the frame; return if there were any."""
    calls = [each for each in scope.expressions() if _moves(each)]
    arguments = [syntax.arguments(each)[0] for each in calls]
    return _replaced([
        (call, {"Nested": _moving(dict(call))})
        for call, type_ in zip(calls, types.types_of(scope, arguments), strict=True)
        if type_ in SQL_TYPES
    ])  # fmt: skip


def _moves(tree: Tree) -> bool:
    if syntax.function_name(tree) not in ("sum", "avg", "mean") or not syntax.is_windowed(tree):
        return False
    specification = tree["Function"]["over"].get("WindowSpec")
    frame = specification and specification["window_frame"]
    return bool(frame) and frame["start_bound"] != {"Preceding": None}


def _moving(call: Tree) -> Tree:
    (value,) = syntax.arguments(call)
    if _is_constant(value):
        # The optimizer computes the conditions below, and fails.
        form = _MOVING_CONSTANT if syntax.function_name(call) == "sum" else _CONSTANT_AVERAGE
        return syntax.filled(form, n=syntax.with_argument(call, value, "count"), a=value)
    counts = {
        name: syntax.with_argument(call, syntax.filled(text, a=value), "count")
        for name, text in _COUNTED.items()
    }
    rest = syntax.with_argument(call, syntax.filled(_FINITE, a=value))
    return syntax.filled(_MOVING, rest=rest, **counts)


def _is_constant(value: Tree) -> bool:
    is_computed = scopes.is_volatile(value) or scopes.has_subquery(value)
    return not is_computed and not any(syntax.columns(value))


def hide_from_statistics(scope: SelectScope, types: Types) -> bool:
    """Hide columns in conditions from statistics."""
    in_groups = _hide_in_groups(scope, types)
    trees = list(_compared(scope))
    in_conditions = _replaced([
        (each, float_forms.filled(ONE_NAN, each, type_))
        for each, type_ in zip(trees, types.types_of(scope, trees), strict=True)
        if type_ in SQL_TYPES
    ])  # fmt: skip
    return in_groups | in_conditions


def _hide_in_groups(scope: SelectScope, types: Types) -> bool:
    """Also hide the columns of HAVING in GROUP BY, because both must match."""
    trees = list(columns.outside_aggregates(scope.select["having"]))
    names = {
        columns.spelling(each)[-1]
        for each, type_ in zip(trees, types.types_of(scope, trees), strict=True)
        if type_ in SQL_TYPES
    }
    form = syntax.filled(_HIDDEN_GROUP, a={"Identifier": syntax.identifier("__column")})
    return bool(names) and columns.replace(scope, frozenset(names), lambda _column: form)


def _is_column(tree: Tree) -> bool:
    return syntax.kind(tree) in ("Identifier", "CompoundIdentifier")


def _compared(scope: SelectScope) -> Iterator[Tree]:
    conditions = [scope.select["selection"]]
    conditions += [condition for join in scope.joins() for condition in scopes.on(join)]
    for each in syntax.inside(conditions):
        if _is_column(each):
            yield each


def _replaced(changes: list[tuple[Tree, Tree]]) -> bool:
    for old, new in changes:
        syntax.replace(old, new)
    return bool(changes)
