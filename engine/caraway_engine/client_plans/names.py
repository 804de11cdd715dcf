"""Names of functions in a plan: which function is meant, and by whose definition."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from substrait.algebra_pb2 import Expression
from substrait.extensions.extensions_pb2 import SimpleExtensionURN
from substrait.plan_pb2 import Plan

from caraway_engine.client_plans import older
from caraway_engine.client_plans.refusals import refusal, unsupported

_OFFICIAL = re.compile(r"(?:extension:io\.substrait:|.*/)?(functions_[a-z_]+)(?:\.yaml)?")
_LONGEST = 300
_NO_URN = -1
_ANY_URN = 2**32 - 1
_WORD = re.compile(r"[a-z_][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class PlanFunction:
    """A function of a plan. `is_standard` says that Substrait defines it, else the engine does."""

    name: str
    is_standard: bool


class PlanFunctions:
    """The functions that a plan declares, by their anchors."""

    def __init__(self, plan: Plan) -> None:
        urns = list(plan.extension_urns)
        has_uris = not urns
        if has_uris:
            urns = [SimpleExtensionURN.FromString(each) for each in older.values(plan, 1)]
        standard = {each.extension_urn_anchor: _is_standard(each.urn) for each in urns}
        self._known: dict[int, PlanFunction] = {}
        for each in plan.extensions:
            kind = each.WhichOneof("mapping_type")
            if kind == "extension_type_variation":
                raise unsupported("a variation of a type")
            if kind != "extension_function":
                continue
            declared = each.extension_function
            anchor = declared.function_anchor
            if anchor in self._known:
                raise refusal(f"two functions have the anchor {anchor}")
            reference = declared.extension_urn_reference
            if not reference:
                # Both forms in one plan: what the older one refers to is not known.
                reference = older.number(declared, 1) or 0
                reference = reference if has_uris or not reference else _NO_URN
            self._known[anchor] = _function(str(declared.name), reference, standard)

    def function_of(self, anchor: int) -> PlanFunction:
        """Return the function with an anchor.

        Raises:
            InvalidQueryError: the plan declares none, or its definition is not known.
        """
        function = self._known.get(anchor)
        if function is None:
            raise refusal(f"it calls the function {anchor}, but declares none with this anchor")
        if not function.name:
            raise unsupported("a function whose name or extension is not known")
        return function

    def joined(self, condition: Expression) -> set[str]:
        """Return the functions whose calls a condition joins with AND; "" for what is no call."""
        if condition.WhichOneof("rex_type") != "scalar_function":
            return {""}
        call = condition.scalar_function
        name = self.function_of(call.function_reference).name
        if name != "and":
            return {name}
        return {found for each in call.arguments for found in self.joined(each.value)}


def check_options(call: Any) -> None:
    """Refuse options that ask for something else than the engine does.

    Raises:
        InvalidQueryError: there is one; failing on overflow is what the engine does.
    """
    for option in call.options:
        if option.name != "overflow" or "ERROR" not in _upper(option.preference):
            raise unsupported(f"the option {option.name!r} of a function")


def _upper(values: Sequence[str]) -> list[str]:
    return [value.upper() for value in values]


def _is_standard(urn: str) -> bool:
    return len(urn) <= _LONGEST and _OFFICIAL.fullmatch(urn) is not None


def _function(declared: str, reference: int, standard: Mapping[int, bool]) -> PlanFunction:
    name = declared.partition(":")[0].lower()
    if not _WORD.fullmatch(name):
        return PlanFunction("", False)
    is_standard = standard.get(reference)
    if is_standard is None:
        # The engine's own plans name no extension; 0 is what a producer leaves unset.
        return PlanFunction(name if reference in (0, _ANY_URN) else "", False)
    return PlanFunction(name if is_standard else "", True)
