"""A model with many tools gets a search of tools in their place."""

from collections.abc import Sequence
from typing import Any

import pytest

from caraway_ai.tools import selecting
from caraway_ai.tools.protocol import ToolCaller, ToolDefinition
from caraway_ai.tools.selecting import ToolSelection
from caraway_ai.tools.tool_search import ToolIndex, ToolQuery, words
from caraway_ai.tools.toolbox import Toolbox
from caraway_core.errors import NotFoundError, ToolError
from tests.kit.tools import FixedTools, echoing

CALLER = ToolCaller()
TEXT = {"type": "string"}


def box(count: int) -> Toolbox:
    made = Toolbox()
    made.sources = [FixedTools("own", tuple(echoing(f"tool{n}") for n in range(count)))]
    return made


def names(selection: ToolSelection) -> list[str]:
    return [tool.name for tool in selection.definitions]


@pytest.mark.parametrize(
    ("mode", "count", "expected"),
    [
        ("auto", 20, 20),
        ("auto", 21, ["tool_search", "tool_invoke"]),
        ("all", 30, 30),
        ("search_registry", 1, ["tool_search", "tool_invoke"]),
        ("own", 21, ["tool_search", "tool_invoke"]),
        ("tool1, tool3", 30, ["tool1", "tool3"]),
        ("none", 5, []),
        ("", 5, []),
    ],
)
def test_modes(mode: str, count: int, expected: Any) -> None:
    found = names(selecting.select(box(count), mode))
    assert (len(found) if isinstance(expected, int) else found) == expected


async def test_only_chosen_tools_can_be_called() -> None:
    chosen = selecting.select(box(3), "tool1")
    assert await chosen.call("tool1", {"a": 1}, CALLER) == {"a": 1}
    with pytest.raises(NotFoundError, match="no tool 'tool2'"):
        await chosen.call("tool2", {}, CALLER)
    with pytest.raises(ToolError, match="'nope'"):
        selecting.select(box(3), "nope")


async def test_tool_search_and_tool_invoke() -> None:
    made = Toolbox()
    made.sources = [
        FixedTools(
            "own",
            (
                echoing("refund_order", "Give money back for an order", order_id=TEXT),
                echoing("list_customers", "List all customers", region=TEXT),
                echoing("weather", "The forecast for a city", city=TEXT),
            ),
        )
    ]
    registry = selecting.select(made, "search_registry")
    asked = {"query": "refunding an order", "keywords": ["order"]}
    found = await registry.call("tool_search", asked, CALLER)
    assert found["query"] == "refunding an order"
    assert found["search_mode"] == "hybrid_rrf"
    best = found["tools"][0]
    assert best["tool_id"] == "refund_order"
    assert best["matched_terms"] == ["order", "refund"]
    assert {each["source"] for each in best["match_sources"]} == {"full_text", "keyword", "schema"}
    assert 0 < best["score"] <= 1
    called = {"tool_id": "refund_order", "arguments": {"order_id": "7"}}
    assert await registry.call("tool_invoke", called, CALLER) == {
        "tool_id": "refund_order",
        "result": {"order_id": "7"},
    }
    with pytest.raises(NotFoundError, match="no tool 'refund'"):
        await registry.call("tool_invoke", {"tool_id": "refund"}, CALLER)


async def test_a_tool_outside_of_the_selection_cannot_be_invoked() -> None:
    made = box(3)
    made.sources = [*made.sources, FixedTools("other", (echoing("secret"),))]
    made.groups = {"some": ["tool1"]}
    chosen = selecting.select(made, "some")
    assert names(chosen) == ["tool1"]
    registry = selecting._registry(made, made.chosen("some"), None)
    with pytest.raises(NotFoundError):
        await registry[1].call({"tool_id": "secret", "arguments": {}}, CALLER)


async def test_meaning_is_a_ranking_of_its_own() -> None:
    async def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [[1.0, 0.0] if "forecast" in text or "rain" in text else [0.0, 1.0]
                for text in texts]  # fmt: skip

    index = ToolIndex(
        [
            ToolDefinition("weather", "The forecast for a city", {}),
            ToolDefinition("customers", "All customers", {}),
        ]
    )
    found = await index.search(ToolQuery("will it rain"), embed)
    assert [(each.tool.name, each.sources[0].source) for each in found] == [("weather", "vector")]
    assert await index.search(ToolQuery("will it rain")) == []
    assert await index.search(ToolQuery("customers", min_score=0.9)) == []


def test_words_of_names_are_split() -> None:
    assert words("getHTTPStatus of orders_2024") == ["get", "http", "statu", "order", "2024"]
    assert words("classes and queries") == ["class", "query"]
