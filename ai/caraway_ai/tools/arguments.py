"""Checks the arguments of a call against the schema of its tool."""

import functools
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from caraway_ai.tools.protocol import Arguments, JsonSchema
from caraway_core.errors import InvalidRequestError
from caraway_core.json_texts import strict_json

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

_MOST_PROBLEMS = 5
_LONGEST_VALUE = 80


class ToolArgumentsError(InvalidRequestError):
    """The arguments of a call do not match the parameters of its tool."""


def parse(text: str) -> Any:
    """Return the arguments that a model wrote as JSON; nothing counts as no arguments.

    Raises:
        ToolArgumentsError: it is not JSON.
    """
    if not text.strip():
        return {}
    try:
        return strict_json.parse(text)
    except ValueError as exc:
        raise ToolArgumentsError(
            f"the arguments are not JSON: {exc}; write one JSON object"
        ) from exc


def check(tool_name: str, schema: JsonSchema, arguments: object) -> Arguments:
    """Return the arguments, with defaults filled in.

    Raises:
        ToolArgumentsError: they do not match the schema; the message lists the errors.
    """
    if not isinstance(arguments, dict):
        raise ToolArgumentsError(
            f"tool '{tool_name}': the arguments must be a JSON object, such as "
            f"{json.dumps(_example(schema))}"
        )
    properties = schema.get("properties", {})
    # Models write null for omitted arguments.
    required = schema.get("required", ())
    given = {
        key: value
        for key, value in arguments.items()
        if value is not None or key in required or key not in properties
    }
    problems = list(_problems(schema, given))
    if problems:
        told = "; ".join(problems[:_MOST_PROBLEMS])
        raise ToolArgumentsError(f"tool '{tool_name}': {told}")
    defaults = {
        key: each["default"]
        for key, each in properties.items()
        if isinstance(each, dict) and "default" in each
    }
    return {**defaults, **given}


def schema_fault(schema: object) -> str:
    """Return why a schema cannot be used for arguments; empty if it can."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return "must be a JSON Schema of type 'object'"
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as exc:
        return f"is not a JSON Schema: {exc.message}"
    except RecursionError:
        return "is nested too deeply"
    return ""


def _problems(schema: JsonSchema, given: dict[str, object]) -> Iterator[str]:
    from referencing.exceptions import Unresolvable

    try:
        found = list(_validator(_Held(schema)).iter_errors(given))
    except (ArithmeticError, RecursionError, Unresolvable, ValueError, re.error) as exc:
        # Also an id that is not a URL, and a number that is too large for what it is divided by.
        yield f"the schema of this tool cannot be used ({type(exc).__name__})"
        return
    for error in sorted(found, key=lambda each: list(map(str, each.path))):
        yield _worded(error, schema)


def _worded(error: "ValidationError", schema: JsonSchema) -> str:
    where = ".".join(map(str, error.path))
    at = f"argument '{where}' " if where else ""
    if error.validator == "required" and not where:
        missing = [name for name in schema.get("required", ()) if name not in error.instance]
        return f"argument '{missing[0]}' is missing" if missing else error.message
    if error.validator == "additionalProperties" and error.validator_value is False and not where:
        # The schema of the error may be one inside, of an 'allOf'.
        known = error.schema.get("properties", {})
        patterns = error.schema.get("patternProperties", {})
        unknown = next(
            name
            for name in error.instance
            if name not in known and not any(re.search(each, name) for each in patterns)
        )
        names = ", ".join([*known, *patterns]) or "none"
        return f"argument '{unknown[:_LONGEST_VALUE]}' is unknown; known: {names}"
    if error.validator == "type":
        kinds = error.validator_value
        wanted = " or ".join(kinds) if isinstance(kinds, list) else kinds
        return f"{at}must be of type {wanted}, not {_shown(error.instance)}"
    if error.validator == "enum":
        return f"{at}must be one of {_shown(error.validator_value)}, not {_shown(error.instance)}"
    return f"{at}is not valid: {error.message[:300]}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _example(schema: JsonSchema) -> dict[str, str]:
    return dict.fromkeys(schema.get("required", ()), "...")


class _Held:
    """A schema by identity: schemas are not hashable, and checking one again costs 1 ms."""

    def __init__(self, schema: JsonSchema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.schema is self.schema


@functools.lru_cache(maxsize=512)
def _validator(held: _Held) -> "Draft202012Validator":
    # Imported here: the start of a process does not need it. Remote references are not followed.
    from jsonschema import Draft202012Validator
    from referencing import Registry

    return Draft202012Validator(held.schema, registry=Registry())
