"""What the API server hands over in; checked specs, or what is wrong with them, out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from caraway_operator.resources import problems
from caraway_operator.resources.cluster import ClusterSpec
from caraway_operator.resources.limits import LimitsSpec
from caraway_operator.resources.problems import SpecProblem

Model = TypeVar("Model", bound=BaseModel)

_MESSAGES = {
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "string_type": "must be a text; put it in quotes",
    "string_too_short": "must not be empty",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "missing": "is missing",
}


@dataclass(frozen=True, slots=True)
class Parsed(Generic[Model]):
    """A spec, if it can be used; else everything that is wrong with it."""

    spec: Model | None
    problems: tuple[SpecProblem, ...] = ()


def cluster(name: str, spec: object) -> Parsed[ClusterSpec]:
    """Check the spec of a `CarawayCluster` of that name."""
    parsed = _parse(ClusterSpec, spec)
    named = problems.of_name(name)
    found = problems.of_spec(parsed.spec) if parsed.spec else parsed.problems
    if named or found:
        return Parsed(None, (*named, *found))
    return parsed


def limits(spec: object) -> Parsed[LimitsSpec]:
    """Check the spec of a `CarawayLimits`, or the fields that a ConfigMap holds."""
    return _parse(LimitsSpec, spec)


def _parse(model: type[Model], spec: object) -> Parsed[Model]:
    try:
        return Parsed(model.model_validate(spec))
    except ValidationError as exc:
        errors = exc.errors(include_url=False, include_input=False)
        return Parsed(None, tuple(_problem(error) for error in errors))


def _problem(error: Mapping[str, Any]) -> SpecProblem:
    kind = error["type"]
    message = str(error["ctx"]["error"]) if kind == "value_error" else error["msg"]
    return SpecProblem(problems.dotted(("spec", *error["loc"])), _MESSAGES.get(kind, message))
