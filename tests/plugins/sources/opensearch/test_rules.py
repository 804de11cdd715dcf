"""Which fields are searched, and how."""

from typing import Any

import pytest

from caraway_plugins.sources.opensearch import rules
from caraway_plugins.sources.opensearch.mapping import IndexMapping
from caraway_plugins.sources.opensearch.rules import FieldRule


def _rules(properties: Any, **settings: Any) -> tuple[FieldRule, ...]:
    return rules.rules_of(IndexMapping(properties), settings)


@pytest.mark.parametrize(
    ("field", "rule"),
    [
        ({"type": "keyword"}, FieldRule("f", "f", "keyword")),
        ({"type": "keyword", "ignore_above": 9}, FieldRule("f", "f", "keyword", most_chars=9)),
        ({"type": "keyword", "normalizer": "lowercase", "null_value": "none"},
         FieldRule("f", "f", "keyword", is_normalized=True, fills_nulls=True)),
        ({"type": "text", "fields": {"e": {"type": "text"}, "raw": {"type": "keyword"}}},
         FieldRule("f", "f.raw", "keyword")),
        ({"type": "short"}, FieldRule("f", "f", "integer", 16)),
        ({"type": "date"}, FieldRule("f", "f", "date")),
    ],
)  # fmt: skip
def test_rules(field: Any, rule: FieldRule) -> None:
    assert _rules({"f": field}) == (rule,)


@pytest.mark.parametrize(
    "field",
    [
        {"type": "text"},
        {"type": "long", "index": False},
        {"type": "long", "script": {"source": "emit(1)"}},
        {"type": "scaled_float"},
        {"type": "float"},
        {"type": "date_nanos"},
        {"type": "nested", "properties": {"x": {"type": "long"}}},
    ],
)
def test_fields_that_are_not_searched(field: Any) -> None:
    assert _rules({"f": field}) == ()


def test_fields_of_objects_have_rules_and_copies_none() -> None:
    properties = {
        "all": {"type": "keyword"},
        "o": {"properties": {"x": {"type": "keyword", "copy_to": "all"}}},
    }
    assert _rules(properties) == (FieldRule("o.x", "o.x", "keyword"),)


def test_usual_values_are_in_the_settings() -> None:
    found = _rules({"f": {"type": "keyword"}}, mapping={"ignore_above": "7"})
    assert found == (FieldRule("f", "f", "keyword", most_chars=7),)


def test_common_rules_are_those_of_all_indexes() -> None:
    one = _rules({"a": {"type": "long"}, "b": {"type": "long"}})
    other = _rules({"a": {"type": "long"}, "b": {"type": "keyword"}})
    assert rules.common([one, other]) == (FieldRule("a", "a", "integer", 64),)
