"""JSON of values that the fast writer refuses."""

import json
from datetime import date

import pytest

from caraway_ai.json_values import dumped


def test_integers_of_any_size() -> None:
    value = {"a": 10**30, "b": ["é", 1.5, None]}
    assert json.loads(dumped(value)) == value
    assert dumped({"a": 1}) == b'{"a":1}'
    assert dumped({"a": 10**30, "on": date(2024, 5, 6)}).endswith(b'"on":"2024-05-06"}')


def test_what_is_nested_too_deeply() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValueError, match="nested too deeply"):
        dumped(value)
