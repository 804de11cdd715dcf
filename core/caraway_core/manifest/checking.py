"""Checks a document against a shape and reports problems in terms of the manifest."""

import difflib
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from caraway_core.errors import Problem
from caraway_core.manifest.documents.document import Document, Location
from caraway_core.manifest.sections import After, Before, Section, key_types

Shape = TypeVar("Shape", bound=Section)
_ADAPTERS: dict[type[Section], TypeAdapter[Any]] = {}


@dataclass(frozen=True, slots=True)
class CheckedDocument(Generic[Shape]):
    """The result of a check: the shape, or the problems found."""

    shape: Shape | None
    problems: tuple[Problem, ...] = ()


def check(model: type[Shape], document: Document) -> CheckedDocument[Shape]:
    """Check a document against a model and find every problem."""
    try:
        adapter = _adapter(model)
        return CheckedDocument(
            adapter.validate_python(document.value, context=document.path.parent)
        )
    except ValidationError as exc:
        errors = exc.errors(include_url=False, include_input=False)
        problems = [_problem(model, document, error) for error in errors]
        # Where a key takes one of several kinds, pydantic complains once for each kind.
        firsts = {problem.path: problem for problem in reversed(problems)}
        return CheckedDocument(
            None, tuple(problem for problem in problems if problem is firsts[problem.path])
        )


def _adapter(model: type[Section]) -> TypeAdapter[Any]:
    if model not in _ADAPTERS:
        _ADAPTERS[model] = TypeAdapter(model)
    return _ADAPTERS[model]


def suggest(word: str, known: Iterable[str]) -> str:
    """Return '; did you mean ...?' with the nearest known word, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else ""


def _problem(model: type[Section], document: Document, error: Mapping[str, Any]) -> Problem:
    location = _existing(document, error["loc"])
    if error["type"] == "extra_forbidden":
        return document.problem(location, _unknown_key(model, error["loc"]))
    if error["type"] == "missing":
        where = (*location, error["loc"][-1])
        return document.problem(where, f"the key '{error['loc'][-1]}' is missing")
    return document.problem(location, _message(error, _value(document, location)))


def _existing(document: Document, location: Location) -> Location:
    """Drop the steps that pydantic adds for alternatives of a type, which no file holds."""
    node = document.root
    kept: list[str | int] = []
    for step in location:
        if step in node.children:
            kept.append(step)
            node = node.children[step][1]
    return tuple(kept)


def _value(document: Document, location: Location) -> Any:
    value = document.value
    for step in location:
        value = value[step]
    return value


def _unknown_key(model: type[Section], location: Location) -> str:
    key = str(location[-1])
    section = _model_at(model, location[:-1])
    known = tuple(key_types(section)) if section else ()
    hint = suggest(key, known) or (f"; known: {', '.join(known)}" if known else "")
    return f"unknown key '{key}'{hint}"


def _model_at(model: type[Section], location: Location) -> type[Section] | None:
    found: type[Section] | None = model
    is_name = False
    for step in location:
        if found is None:
            return None
        if is_name or isinstance(step, int):
            is_name = False
            continue
        types = key_types(found)
        if step in types:
            found, is_name = _model_in(types[step]), _has_names(types[step])
    return found


def _has_names(annotation: object) -> bool:
    """Return whether a value has names that the user gives, in place of known keys."""
    return any(
        typing.get_origin(each) is dict for each in (annotation, *typing.get_args(annotation))
    )


def _model_in(annotation: object) -> type[Section] | None:
    """Return the model inside `X | None`, `Items[X]`, `dict[str, X]` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    if isinstance(annotation, After | Before):
        return _model_in(annotation.checked)
    return next(filter(None, map(_model_in, typing.get_args(annotation))), None)


def _message(error: Mapping[str, Any], value: object) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return _not_one_of(value, context["expected"])
    if kind in _BOUNDS:
        return _BOUNDS[kind](context)
    return _MESSAGES.get(kind, str(error["msg"]))


def _not_one_of(value: object, expected: str) -> str:
    known = [name.strip("'") for name in expected.replace(" or ", ", ").split(", ")]
    if not isinstance(value, str):
        return f"must be one of: {', '.join(known)}"
    return f"'{value}' is not one of: {', '.join(known)}{suggest(value, known)}"


_BOUNDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than_equal": lambda limits: f"must be at least {limits['ge']}",
    "less_than_equal": lambda limits: f"must be at most {limits['le']}",
    "greater_than": lambda limits: f"must be more than {limits['gt']:g}",
    "finite_number": lambda _limits: "must be a number that is not infinite",
    "less_than": lambda limits: f"must be less than {limits['lt']}",
}
_MAPPING = "must be a mapping of keys to values"
_MESSAGES = {
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be a text; put it in quotes",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "holds characters that are not allowed here",
    "tuple_type": "must be a list",
    "dict_type": _MAPPING,
}
