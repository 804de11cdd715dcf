"""Analyses joins: their keys, and which sides may be spread over tasks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from substrait.algebra_pb2 import Expression, Rel

from caraway_engine.stages.functions import Functions
from caraway_engine.stages.relations import field_of, fields, join_type, project, subqueries, width

# One side may be spread over tasks that each have all of the other side if two things hold. Each
# row of the spread side meets all its matches in one task. Rows of the other side serve only as
# matches.
LEFT_MAY_BE_SPREAD = frozenset({"INNER", "LEFT", "LEFT_SEMI", "LEFT_ANTI", "LEFT_MARK"})
RIGHT_MAY_BE_SPREAD = frozenset({"INNER", "RIGHT", "RIGHT_SEMI", "RIGHT_ANTI", "RIGHT_MARK"})
KNOWN = LEFT_MAY_BE_SPREAD | RIGHT_MAY_BE_SPREAD | {"OUTER"}
_EQUALITIES = ("equal", "is_not_distinct_from")


@dataclass(frozen=True, slots=True)
class Key:
    """Two expressions that are equal in matching rows. `right` counts columns from its own side."""

    left: Expression
    right: Expression
    equality: str

    @property
    def columns(self) -> tuple[int | None, int | None]:
        """The columns that the two expressions are, or None for other expressions."""
        return field_of(self.left), field_of(self.right)


def keys(rel: Rel, left_width: int, functions: Functions) -> tuple[Key, ...]:
    """Return the equalities between the two sides that every match must satisfy."""
    if rel.WhichOneof("rel_type") == "cross" or not rel.join.HasField("expression"):
        return ()
    found = []
    for each in conjuncts(rel.join.expression, functions):
        if key := _key(each, left_width, functions):
            found.append(key)
    return tuple(found)


def distinct(keys: Sequence[Key]) -> tuple[Key, ...]:
    """Drop keys that share a column with an earlier key: the earlier ones partition well enough."""
    kept: list[Key] = []
    for key in keys:
        left, right = key.columns
        if not any(
            (left is not None and left == other.columns[0])
            or (right is not None and right == other.columns[1])
            for other in kept
        ):
            kept.append(key)
    return tuple(kept)


def spreads(rel: Rel) -> tuple[bool, bool]:
    """Return whether the left and the right side may be spread, with the other side whole."""
    type_ = join_type(rel)
    return type_ in LEFT_MAY_BE_SPREAD, type_ in RIGHT_MAY_BE_SPREAD


def conjuncts(expression: Expression, functions: Functions) -> Iterator[Expression]:
    """Yield the conditions that an expression combines with `and`."""
    call = expression.scalar_function
    if (
        expression.WhichOneof("rex_type") == "scalar_function"
        and functions.name(call.function_reference) == "and"
    ):
        for argument in call.arguments:
            yield from conjuncts(argument.value, functions)
    else:
        yield expression


def _key(expression: Expression, left_width: int, functions: Functions) -> Key | None:
    call = expression.scalar_function
    if expression.WhichOneof("rex_type") != "scalar_function" or len(call.arguments) != 2:
        return None
    name = functions.name(call.function_reference)
    if name not in _EQUALITIES:
        return None
    first, second = (argument.value for argument in call.arguments)
    sides = [_side(first, left_width), _side(second, left_width)]
    if sides == ["left", "right"]:
        return Key(first, moved(second, -left_width), name)
    if sides == ["right", "left"]:
        return Key(second, moved(first, -left_width), name)
    return None


def _side(expression: Expression, left_width: int) -> str:
    if any(True for _ in subqueries(expression)):
        return "both"
    found = {"left" if each.field < left_width else "right" for each in fields(expression)}
    return found.pop() if len(found) == 1 else "both"


def moved(expression: Expression, by: int) -> Expression:
    """Return a copy of an expression with all column positions shifted."""
    new = Expression()
    new.CopyFrom(expression)
    for each in fields(new):
        each.field += by
    return new


def reduction(
    large: Rel, small: Rel, pairs: list[tuple[Expression, Expression, str]], functions: Functions
) -> Rel:
    """Keep the rows of `large` that match a row of `small`; pairs are (large, small, equality)."""
    distinct = project(small, [each for _, each, _ in pairs])
    new = Rel()
    new.join.left.CopyFrom(large)
    new.join.right.CopyFrom(distinct)
    new.join.type = new.join.JOIN_TYPE_LEFT_SEMI
    inside = width(large)
    conditions = []
    for number, (mine, _, equality) in enumerate(pairs):
        other = Expression()
        other.selection.direct_reference.struct_field.field = inside + number
        other.selection.root_reference.SetInParent()
        conditions.append(functions.call(equality, mine, other))
    new.join.expression.CopyFrom(conjunction(conditions, functions))
    return new


def conjunction(conditions: Sequence[Expression], functions: Functions) -> Expression:
    """Combine conditions with `and`."""
    first, *others = conditions
    for each in others:
        first = functions.call("and", first, each)
    return first


def count_conditions(rel: Rel, functions: Functions) -> int:
    """Return the number of conditions that a match must satisfy."""
    if not rel.join.HasField("expression"):
        return 0
    return len(list(conjuncts(rel.join.expression, functions)))


def is_own_equality(condition: Expression, left_width: int, functions: Functions) -> bool:
    """Return whether a condition compares two columns of the same side for equality."""
    call = condition.scalar_function
    if condition.WhichOneof("rex_type") != "scalar_function":
        return False
    if functions.name(call.function_reference) not in _EQUALITIES:
        return False
    columns = [field_of(argument.value) for argument in call.arguments]
    sides = {column is not None and column < left_width for column in columns}
    return None not in columns and len(sides) == 1


def equalities(rel: Rel, functions: Functions) -> list[str]:
    """Return the name of the equality function of each condition that is an equality."""
    if not rel.join.HasField("expression"):
        return []
    names = [
        functions.name(each.scalar_function.function_reference)
        for each in conjuncts(rel.join.expression, functions)
        if each.WhichOneof("rex_type") == "scalar_function"
    ]
    return [name for name in names if name in _EQUALITIES]
