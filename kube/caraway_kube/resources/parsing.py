"""Parses the specs of custom resources into models, or into lists of problems."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from caraway_kube.resources import problems
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_kube.resources.limits import CarawayLimitsSpec
from caraway_kube.resources.problems import SpecProblem

Model = TypeVar("Model", bound=BaseModel)

_MESSAGES = {
    "bool_type": "must be true or false",
    "int_type": "must be an integer",
    "string_type": "must be a string; put it in quotes",
    "string_too_short": "must not be empty",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "missing": "is missing",
}


@dataclass(frozen=True, slots=True)
class ParsedSpec(Generic[Model]):
    """A valid spec, or all its problems."""

    spec: Model | None
    problems: tuple[SpecProblem, ...] = ()


def cluster(name: str, spec: object) -> ParsedSpec[CarawayClusterSpec]:
    """Parse the spec of a `CarawayCluster` with this name."""
    parsed = _parse(CarawayClusterSpec, spec)
    named = problems.of_name(name)
    spec_problems = problems.of_spec(parsed.spec) if parsed.spec else parsed.problems
    if named or spec_problems:
        return ParsedSpec(None, (*named, *spec_problems))
    return parsed


def limits(spec: object) -> ParsedSpec[CarawayLimitsSpec]:
    """Parse the spec of a `CarawayLimits`, or the same fields from a ConfigMap."""
    return _parse(CarawayLimitsSpec, spec)


def _parse(model: type[Model], spec: object) -> ParsedSpec[Model]:
    try:
        return ParsedSpec(model.model_validate(spec))
    except ValidationError as exc:
        errors = exc.errors(include_url=False, include_input=False)
        return ParsedSpec(None, tuple(_problem(error) for error in errors))


def _problem(error: Mapping[str, Any]) -> SpecProblem:
    kind = error["type"]
    message = str(error["ctx"]["error"]) if kind == "value_error" else error["msg"]
    return SpecProblem(problems.dotted(("spec", *error["loc"])), _MESSAGES.get(kind, message))
