"""Arguments that models write are checked against the schema, and errors say what to write."""

from typing import Any

import pytest

from caraway_ai.tools import arguments
from caraway_ai.tools.arguments import ToolArgumentsError

SCHEMA = {
    "type": "object",
    "properties": {
        "tbl": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1, "default": 10},
        "output": {"enum": ["full", "minimal"]},
        "nested": {"type": "object", "properties": {"n": {"type": "number"}}},
        "maybe": {"type": ["integer", "null"]},
    },
    "required": ["tbl"],
    "additionalProperties": False,
}


def test_defaults_are_filled_in_and_null_counts_as_left_out() -> None:
    given = {"tbl": "t", "limit": None, "output": None}
    assert arguments.check("x", SCHEMA, given) == {"tbl": "t", "limit": 10}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "argument 'tbl' is missing"),
        ({"tbl": 5}, "argument 'tbl' must be of type string, not 5"),
        ({"tbl": None}, "argument 'tbl' must be of type string, not null"),
        ({"tbl": "t", "limit": 0}, "argument 'limit' is not valid: 0 is less than the minimum"),
        ({"tbl": "t", "limit": "3"}, "argument 'limit' must be of type integer, not \"3\""),
        ({"tbl": "t", "output": "all"}, 'must be one of ["full", "minimal"], not "all"'),
        ({"tbl": "t", "lmit": 3}, "argument 'lmit' is unknown; known: tbl, limit, output"),
        ({"tbl": "t", "nested": {"n": "x"}}, "argument 'nested.n' must be of type number"),
        ({"tbl": "t", "maybe": "x"}, "must be of type integer or null"),
        (["t"], 'must be a JSON object, such as {"tbl": "..."}'),
        ("t", "must be a JSON object"),
        (None, "must be a JSON object"),
    ],
)
def test_wrong_arguments_are_named(given: Any, told: str) -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        arguments.check("sampler", SCHEMA, given)
    assert caught.value.message.startswith("tool 'sampler': ")
    assert told in caught.value.message


def test_a_long_value_is_not_repeated() -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        arguments.check("x", SCHEMA, {"tbl": ["y" * 10_000]})
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1', "the arguments are not JSON: line 1"),
        ("sql SELECT 1", "the arguments are not JSON"),
        ('{"a": 1, "a": 2}', 'the key "a" is there twice'),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_not_json_is_refused(text: str, told: str) -> None:
    with pytest.raises(ToolArgumentsError, match="not JSON") as caught:
        arguments.parse(text)
    assert told in caught.value.message


def test_nothing_means_no_arguments() -> None:
    assert arguments.parse("  ") == {}


def test_a_reference_to_another_document_is_not_followed() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}}}
    with pytest.raises(ToolArgumentsError, match="schema of this tool cannot be used"):
        arguments.check("x", schema, {"a": 1})


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        (SCHEMA, ""),
        ({}, ""),
        ({"type": "array"}, "must be a JSON Schema of type 'object'"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "is not a JSON Schema"),
        ("x", "must be a JSON Schema of type 'object'"),
    ],
)
def test_schemas_are_checked(schema: Any, fault: str) -> None:
    found = arguments.schema_fault(schema)
    assert found.startswith(fault) if fault else found == ""


INNER = {
    "properties": {"b": {}},
    "allOf": [{"properties": {"a": {}}, "additionalProperties": False}],
}
PATTERNS = {"patternProperties": {"^x": {}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "given", "told"),
    [
        (INNER, {"b": 1}, "argument 'b' is unknown; known: a"),
        (PATTERNS, {"x1": 1, "y": 2}, "argument 'y' is unknown; known: ^x"),
        ({"additionalProperties": {"type": "string"}}, {"a": 1}, "'a' must be of type string"),
        ({"properties": {"a": {"multipleOf": 0.1}}}, {"a": 10**400}, "(OverflowError)"),
        ({"properties": {"a": {"$ref": "#/none"}}}, {"a": 1}, "cannot be used"),
        ({"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}, {"a": 1}, "cannot be used"),
        ({"$id": "http://[::1", "properties": {"a": {"$ref": "y"}}}, {"a": 1}, "(ValueError)"),
        ({"$ref": "#"}, {}, "(RecursionError)"),
        ({"unevaluatedProperties": False}, {"a": 1}, "Unevaluated properties are not allowed"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "'b' is a dependency of 'a'"),
        ({"allOf": [{"required": ["b"]}]}, {}, "'b' is a required property"),
    ],
)
def test_odd_schemas_are_told_of_and_raise_nothing_else(schema: Any, given: Any, told: str) -> None:
    assert arguments.schema_fault({"type": "object", **schema}) == ""
    with pytest.raises(ToolArgumentsError) as caught:
        arguments.check("x", {"type": "object", **schema}, given)
    assert told in caught.value.message
