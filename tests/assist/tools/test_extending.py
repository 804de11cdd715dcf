"""What the params of a model say of its tools: rounds and tables."""

from typing import Any

import pytest

from caraway_ai.tool_loop.running import DEFAULT_ROUNDS
from caraway_assist.tools import extending
from caraway_core.errors import ModelError


def model(*datasets: str, **params: str) -> Any:
    class Declared:
        name = "m"

    made: Any = Declared()
    made.params, made.datasets = params, datasets
    return made


@pytest.mark.parametrize(
    ("params", "rounds"),
    [
        ({}, DEFAULT_ROUNDS),
        ({"tool_recursion_limit": "1"}, 1),
        ({"tool_recursion_limit": "100"}, 100),
    ],
)
def test_rounds(params: dict[str, str], rounds: int) -> None:
    assert extending._most_rounds(model(**params)) == rounds


@pytest.mark.parametrize("text", ["", "0", "101", "-1", "1.5", " 5", "\u0665", "many"])
def test_rounds_are_bounded(text: str) -> None:
    with pytest.raises(ModelError, match="'tool_recursion_limit' must be a whole number") as caught:
        extending._most_rounds(model(tool_recursion_limit=text))
    assert caught.value.type == "invalid"


def test_without_datasets_all_tables_may_be_read() -> None:
    assert extending.allowed_tables(model()) is None


def test_tables_that_are_named_may_be_read() -> None:
    found = extending.allowed_tables(model("orders", "sales.items"))
    assert found is not None
    assert {"orders", "sales.items"} <= found
    assert "users" not in found
