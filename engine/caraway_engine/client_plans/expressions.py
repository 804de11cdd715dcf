"""Expressions of Substrait as SQL."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from substrait.algebra_pb2 import (
    AGGREGATION_PHASE_INITIAL_TO_RESULT,
    AGGREGATION_PHASE_UNSPECIFIED,
    AggregateFunction,
    Expression,
    Rel,
    SortField,
)
from substrait.type_pb2 import Type

from caraway_engine.client_plans import calls, literals, types, words
from caraway_engine.client_plans.losses import Losses
from caraway_engine.client_plans.names import PlanFunctions, check_options
from caraway_engine.client_plans.refusals import only, refusal, unsupported
from caraway_engine.client_plans.words import PlanTerm

_ORDERS: dict[int, str] = {
    SortField.SORT_DIRECTION_ASC_NULLS_FIRST: "ASC NULLS FIRST",
    SortField.SORT_DIRECTION_ASC_NULLS_LAST: "ASC NULLS LAST",
    SortField.SORT_DIRECTION_DESC_NULLS_FIRST: "DESC NULLS FIRST",
    SortField.SORT_DIRECTION_DESC_NULLS_LAST: "DESC NULLS LAST",
}
_FRAMELESS = frozenset(
    {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"}
)
_FRAMED = frozenset({"sum", "avg", "min", "max", "count", "first_value", "last_value", "nth_value"})
_PHASES = (AGGREGATION_PHASE_UNSPECIFIED, AGGREGATION_PHASE_INITIAL_TO_RESULT)
_ALL = (
    AggregateFunction.AGGREGATION_INVOCATION_UNSPECIFIED,
    AggregateFunction.AGGREGATION_INVOCATION_ALL,
)
_DISTINCT = AggregateFunction.AGGREGATION_INVOCATION_DISTINCT
_ROWS = Expression.WindowFunction.BOUNDS_TYPE_ROWS
_RANGE = Expression.WindowFunction.BOUNDS_TYPE_RANGE
_EXISTS = Expression.Subquery.SetPredicate.PREDICATE_OP_EXISTS
_THROWS = (
    Expression.Cast.FAILURE_BEHAVIOR_UNSPECIFIED,
    Expression.Cast.FAILURE_BEHAVIOR_THROW_EXCEPTION,
)
_OR_NULL = Expression.Cast.FAILURE_BEHAVIOR_RETURN_NULL


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns that an expression may read, and what its parts are written with."""

    columns: Sequence[PlanTerm]
    functions: PlanFunctions
    losses: Losses
    query: Callable[[Rel, "Scope"], tuple[str, Sequence[PlanTerm]]]
    """Writes the relation of a subquery, and returns its columns; takes the scope around it."""
    outer: "Scope | None" = None

    def written(self, expression: Expression) -> PlanTerm:
        """Write an expression.

        Raises:
            InvalidQueryError: it is wrong, or a part of it is not supported.
        """
        kind = str(expression.WhichOneof("rex_type"))
        maker = _MAKERS.get(kind)
        if maker is None:
            raise unsupported(f"Expression.{kind}")
        return maker(self, getattr(expression, kind))

    def measure(self, measure: Any) -> PlanTerm:
        """Write an aggregate. Raises the same as `written`."""
        only(measure, "measure", "filter")
        found = measure.measure
        only(
            found, "function_reference", "arguments", "options", "output_type", "phase", "sorts",
            "invocation",
        )  # fmt: skip
        condition = ""
        if measure.HasField("filter"):
            condition = f" FILTER (WHERE {self.written(measure.filter).sql})"
        sql, type_ = self._called(found, condition)
        return calls.aggregated(self.functions.function_of(found.function_reference), sql, type_)

    def key(self, field: SortField) -> tuple[PlanTerm, str]:
        """Return what to sort by, and the words for the direction. Raises the same."""
        only(field, "expr", "direction")
        direction = _ORDERS.get(field.direction)
        if direction is None:
            raise unsupported("this direction of sorting")
        return self.written(field.expr), direction

    def _called(self, found: Any, condition: str = "") -> tuple[str, Type | None]:
        check_options(found)
        if found.phase not in _PHASES:
            raise unsupported("an aggregate of intermediate results")
        function = self.functions.function_of(found.function_reference)
        arguments, parts = self._arguments(found)
        if parts:
            raise unsupported(f"the word {parts[0]!r} as an argument of {function.name}")
        type_ = _declared(found)
        name, order = function.name, ""
        if not isinstance(found, Expression.WindowFunction):
            name = calls.aggregate(function, arguments, type_, is_ordered=bool(found.sorts))
            order = f" ORDER BY {self._sorted(found.sorts)}" if found.sorts else ""
        values = words.listed(arguments) or ("*" if name == "count" else "")
        if found.invocation == _DISTINCT:
            values = f"DISTINCT {values}"
        elif found.invocation not in _ALL:
            raise unsupported("this invocation of an aggregate")
        return f"{name}({values}{order}){condition}", type_

    def _arguments(self, call: Any) -> tuple[list[PlanTerm], list[str]]:
        values: list[PlanTerm] = []
        parts: list[str] = []
        for each in call.arguments:
            match each.WhichOneof("arg_type"):
                case "value":
                    values.append(self.written(each.value))
                case "enum":
                    parts.append(each.enum.upper())
                case other:
                    raise unsupported(f"the argument {other} of a function")
        return values, parts

    def _sorted(self, fields: Sequence[SortField]) -> str:
        keys = (self.key(each) for each in fields)
        return ", ".join(f"{term.operand} {direction}" for term, direction in keys)

    def _selection(self, reference: Expression.FieldReference) -> PlanTerm:
        only(reference, "direct_reference", "root_reference", "outer_reference")
        scope: Scope | None = self
        if reference.HasField("outer_reference"):
            only(reference.outer_reference, "steps_out")
            for _ in range(reference.outer_reference.steps_out):
                scope = scope.outer if scope is not None else None
        segment = reference.direct_reference
        if segment.WhichOneof("reference_type") != "struct_field":
            raise unsupported("a reference to an element of a list or a map")
        columns = () if scope is None else scope.columns
        place = int(segment.struct_field.field)
        if not 0 <= place < len(columns):
            raise refusal(f"it refers to column {place} of {len(columns)}, counting from 0")
        if segment.struct_field.HasField("child"):
            raise unsupported("a reference to a field of a struct")
        return columns[place]

    def _literal(self, found: Expression.Literal) -> PlanTerm:
        sql, type_ = literals.written(found)
        return PlanTerm(sql, type_, is_atomic=True, is_literal=True)

    def _scalar(self, scalar_function: Expression.ScalarFunction) -> PlanTerm:
        only(scalar_function, "function_reference", "arguments", "options", "output_type")
        check_options(scalar_function)
        arguments, parts = self._arguments(scalar_function)
        function = self.functions.function_of(scalar_function.function_reference)
        return calls.scalar(function, arguments, parts, _declared(scalar_function))

    def _window(self, window_function: Expression.WindowFunction) -> PlanTerm:
        function = self.functions.function_of(window_function.function_reference)
        if function.name not in _FRAMED and function.name not in _FRAMELESS:
            raise unsupported(f"the window function {function.name!r}")
        self.losses.check_window(function.name)
        if window_function.invocation == _DISTINCT:
            raise unsupported("DISTINCT in a window function")
        sql, type_ = self._called(window_function)
        parts = []
        if window_function.partitions:
            terms = [self.written(each) for each in window_function.partitions]
            parts.append(f"PARTITION BY {', '.join(each.operand for each in terms)}")
        if window_function.sorts:
            parts.append(f"ORDER BY {self._sorted(window_function.sorts)}")
        if function.name in _FRAMED:
            parts.append(_frame(window_function))
        term = calls.aggregated(function, f"{sql} OVER ({' '.join(parts)})", type_)
        return replace(term, has_window=True)

    def _if_then(self, then: Expression.IfThen) -> PlanTerm:
        base, clauses = "", list(then.ifs)
        inside: list[PlanTerm] = []
        if clauses and not clauses[0].HasField("then"):
            # The engine's producer writes the operand of a CASE as a clause without THEN.
            inside.append(self.written(getattr(clauses.pop(0), "if")))
            base = f" {inside[0].operand}"
        if not clauses:
            raise refusal("a CASE has no branch")
        sql = f"CASE{base}"
        results: list[PlanTerm] = []
        for clause in clauses:
            condition, result = self.written(getattr(clause, "if")), self.written(clause.then)
            sql += f" WHEN {condition.sql} THEN {result.sql}"
            inside += (condition, result)
            results.append(result)
        return self._ended(sql, then, inside, results)

    def _switch(self, expression: Expression.SwitchExpression) -> PlanTerm:
        only(expression, "match", "ifs", "else")
        value = self.written(expression.match)
        sql, results = f"CASE {value.operand}", []
        if not expression.ifs:
            raise refusal("a CASE has no branch")
        for clause in expression.ifs:
            tested, result = literals.written(getattr(clause, "if"))[0], self.written(clause.then)
            sql += f" WHEN {tested} THEN {result.sql}"
            results.append(result)
        return self._ended(sql, expression, [value, *results], results)

    def _ended(
        self, sql: str, found: Any, inside: list[PlanTerm], results: list[PlanTerm]
    ) -> PlanTerm:
        """End a CASE."""
        if found.HasField("else"):
            last = self.written(getattr(found, "else"))
            sql += f" ELSE {last.sql}"
            inside, results = [*inside, last], [*results, last]
        same = {types.kind(each.type) for each in results}
        type_ = results[0].type if len(same) == 1 and "decimal" not in same else None
        return PlanTerm(f"{sql} END", type_, is_atomic=True, has_window=words.any_window(inside))

    def _among(self, singular_or_list: Expression.SingularOrList) -> PlanTerm:
        value = self.written(singular_or_list.value)
        options = [self.written(each) for each in singular_or_list.options]
        if not options:
            raise refusal("a list of options is empty")
        term = PlanTerm(f"{value.operand} IN ({words.listed(options)})")
        return replace(term, has_window=words.any_window([value, *options]))

    def _cast(self, cast: Expression.Cast) -> PlanTerm:
        inner = self.written(cast.input)
        if types.kind(cast.type) == "precision_timestamp_tz":
            raise unsupported("a cast to a timestamp with a zone, because the plan has no zone")
        if cast.failure_behavior not in (*_THROWS, _OR_NULL):
            raise unsupported("this failure behavior of a cast")
        sql = types.cast(inner.sql, cast.type, or_null=cast.failure_behavior == _OR_NULL)
        if sql is None:
            raise unsupported(f"this cast to {types.kind(cast.type)}")
        return PlanTerm(sql, cast.type, is_atomic=True, has_window=inner.has_window)

    def _subquery(self, subquery: Expression.Subquery) -> PlanTerm:
        kind = subquery.WhichOneof("subquery_type")
        match kind:
            case "scalar":
                sql, columns = self.query(subquery.scalar.input, self)
                if len(columns) != 1:
                    raise refusal("a scalar subquery must have one column")
                return PlanTerm(f"({sql})", columns[0].type, is_atomic=True)
            case "in_predicate":
                predicate = subquery.in_predicate
                sql, columns = self.query(predicate.haystack, self)
                if len(predicate.needles) != 1 or len(columns) != 1:
                    raise unsupported("IN with several columns")
                return PlanTerm(f"{self.written(predicate.needles[0]).operand} IN ({sql})")
            case "set_predicate":
                if subquery.set_predicate.predicate_op != _EXISTS:
                    raise unsupported("UNIQUE of a subquery")
                sql, _ = self.query(subquery.set_predicate.tuples, self)
                return PlanTerm(f"EXISTS ({sql})", is_atomic=True)
        raise unsupported(f"Subquery.{kind}")


def _declared(call: Any) -> Type | None:
    return call.output_type if types.kind(call.output_type) else None


def _frame(window_function: Expression.WindowFunction) -> str:
    bounds = (
        _bound(window_function.lower_bound, "UNBOUNDED PRECEDING"),
        _bound(window_function.upper_bound, "UNBOUNDED FOLLOWING"),
    )
    between = f"BETWEEN {bounds[0]} AND {bounds[1]}"
    if window_function.bounds_type == _ROWS or all(each.startswith("UNBOUNDED") for each in bounds):
        return f"ROWS {between}"
    if window_function.bounds_type != _RANGE:
        raise unsupported("a window frame without a unit")
    if any(each[0].isdigit() for each in bounds):
        raise unsupported("a frame of RANGE with an offset, because the plan has no type for it")
    return f"RANGE {between}"


def _bound(found: Expression.WindowFunction.Bound, unbounded: str) -> str:
    match found.WhichOneof("kind"):
        case "preceding":
            return f"{_offset(found.preceding.offset)} PRECEDING"
        case "following":
            return f"{_offset(found.following.offset)} FOLLOWING"
        case "current_row":
            return "CURRENT ROW"
        case "unbounded" | None:
            return unbounded
    raise unsupported("this bound of a window frame")


def _offset(value: int) -> int:
    if value < 0:
        raise refusal("an offset of a window frame is negative")
    return value


_MAKERS: dict[str, Callable[[Scope, object], PlanTerm]] = {
    "literal": Scope._literal,
    "selection": Scope._selection,
    "scalar_function": Scope._scalar,
    "window_function": Scope._window,
    "if_then": Scope._if_then,
    "switch_expression": Scope._switch,
    "singular_or_list": Scope._among,
    "cast": Scope._cast,
    "subquery": Scope._subquery,
}
