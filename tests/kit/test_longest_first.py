"""The order in which workers are handed modules."""

from pathlib import Path

import pytest

from tests.kit import longest_first
from tests.kit.longest_first import LONGEST

ROOT = Path(__file__).parents[2]


def test_each_module_that_is_named_is_there_once() -> None:
    assert [name for name in LONGEST if not (ROOT / name).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)


def test_long_modules_come_first_and_the_others_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(longest_first, "LONGEST", ("long", "middle"))
    items = ["b::1", "middle::1", "a::1", "long::2", "b::2", "long::1"]
    ordered = longest_first.longest_first(items, lambda item: item.split("::")[0])
    assert ordered == ["long::2", "long::1", "middle::1", "a::1", "b::1", "b::2"]
