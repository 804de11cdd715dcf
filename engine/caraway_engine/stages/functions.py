"""Looks up and declares the functions of a Substrait plan."""

from substrait.algebra_pb2 import Expression, Rel
from substrait.plan_pb2 import Plan
from substrait.type_pb2 import Type


class Functions:
    """Maps function names and anchors of one plan, and builds fragments that use them."""

    def __init__(self, plan: Plan) -> None:
        self._declarations = list(plan.extensions)
        self._names: dict[int, str] = {}
        for each in plan.extensions:
            self._names[each.extension_function.function_anchor] = each.extension_function.name
        self._anchors = {name: anchor for anchor, name in self._names.items()}

    def name(self, anchor: int) -> str:
        """Return the name of a function by its anchor, or ""."""
        return self._names.get(anchor, "")

    @property
    def names(self) -> frozenset[str]:
        """The names of all functions that the plan declares."""
        return frozenset(self._anchors)

    def anchor(self, name: str) -> int:
        """Return the anchor of a function, and declare it if the plan did not."""
        if name not in self._anchors:
            anchor = max(self._names, default=-1) + 1
            declaration = Plan().extensions.add()
            declaration.extension_function.function_anchor = anchor
            declaration.extension_function.name = name
            declaration.extension_function.extension_urn_reference = 2**32 - 1
            self._declarations.append(declaration)
            self._names[anchor] = name
            self._anchors[name] = anchor
        return self._anchors[name]

    def call(self, name: str, *arguments: Expression) -> Expression:
        """Return a call of a scalar function."""
        expression = Expression()
        expression.scalar_function.function_reference = self.anchor(name)
        for each in arguments:
            expression.scalar_function.arguments.add().value.CopyFrom(each)
        return expression

    def plan(self, rel: Rel) -> bytes:
        """Serialize a relation as a plan of its own: a fragment."""
        plan = Plan()
        plan.version.minor_number = 80
        plan.extensions.extend(self._declarations)
        plan.relations.add().rel.CopyFrom(rel)
        return bytes(plan.SerializeToString())


def cast(expression: Expression, type_: Type) -> Expression:
    """Return an expression that casts another one and fails if a value does not fit."""
    new = Expression()
    new.cast.input.CopyFrom(expression)
    new.cast.type.CopyFrom(type_)
    new.cast.failure_behavior = Expression.Cast.FAILURE_BEHAVIOR_THROW_EXCEPTION
    return new
