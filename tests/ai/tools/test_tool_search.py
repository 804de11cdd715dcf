"""Tools are found by their purpose, in any wording of names and descriptions."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.tools.protocol import ToolDefinition
from caraway_ai.tools.tool_search import ToolIndex, ToolQuery, words
from caraway_core.errors import ModelError
from caraway_core.sqltext.searching import RRF_K


def tool(name: str, description: str = "", **properties: object) -> ToolDefinition:
    schema = {"type": "object", "properties": properties} if properties else {"type": "object"}
    return ToolDefinition(name, description, schema)


async def names(tools: Sequence[ToolDefinition], text: str, *keywords: str) -> list[str]:
    found = await ToolIndex(tools).search(ToolQuery(text, keywords))
    return [match.tool.name for match in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("list_open_orders", ["list", "open", "order"]),
        ("listOpenOrders", ["list", "open", "order"]),
        ("ListHTTPServers", ["list", "http", "server"]),
        ("APIs", ["api"]),
        ("all URLs, IDs and CSVs", ["all", "url", "id", "csv"]),
        ("getURLsOf", ["get", "url"]),
        ("top10_rows2024", ["top", "10", "row", "2024"]),
        ("queries and query", ["query", "query"]),
        ("addresses, address", ["address", "address"]),
        ("class", ["class"]),
        ("is it as bad", ["bad"]),
        ("searching search", ["search", "search"]),
        ("東京 大阪", ["東京", "大阪"]),
        ("a-b.c/d", ["b", "c", "d"]),
        ("🦆 duck", ["duck"]),
    ],
)
def test_words_of_any_spelling(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize(
    "pair",
    [
        ("API", "APIs"), ("order", "Orders"), ("ORDERS", "orders"), ("category", "categories"),
        ("process", "processes"), ("URL", "url"), ("list_URLs", "listUrls"),
    ],
)  # fmt: skip
def test_one_word_in_two_forms_is_one(pair: tuple[str, str]) -> None:
    assert words(pair[0]) == words(pair[1])


@given(st.text(max_size=60))
def test_words_are_words_of_the_text(text: str) -> None:
    for word in words(text):
        assert word
        assert word == word.lower() or len(word.lower()) != len(word)
    assert words(text) == words(f" {text} ")


async def test_a_tool_is_found_by_its_name_description_or_parameters() -> None:
    tools = [
        tool("list_open_orders", "Shows what was bought"),
        tool("weather", "Forecast for a city"),
        tool("refund", "Pays back", reason={"description": "Why the parcel was returned"}),
        tool("ship", "Sends", carrier={"enum": ["DHL", "UPS"]}),
    ]
    assert await names(tools, "open order") == ["list_open_orders"]
    assert await names(tools, "forecasts") == ["weather"]
    assert await names(tools, "parcel") == ["refund"]
    assert await names(tools, "carrier") == ["ship"]
    assert await names(tools, "dhl") == ["ship"]
    assert await names(tools, "nothing like this") == []
    assert await names([], "anything") == []


async def test_keywords_prefer_tools_whose_names_have_them() -> None:
    tools = [tool("send", "mail to customers"), tool("mail", "send to customers")]
    assert await names(tools, "customers", "mail") == ["mail", "send"]
    assert await names(tools, "customers", "send") == ["send", "mail"]


@pytest.mark.parametrize(
    "properties",
    [
        {"a": True},
        {"a": {}},
        {"a": {"enum": [1, None, {"b": 2}]}},
        {"a": {"description": None}},
        {"a": {"description": 7}},
        {"": {"description": ""}},
    ],
)
async def test_schemas_of_every_shape_are_read(properties: dict[str, object]) -> None:
    odd = ToolDefinition("odd", "thing", {"properties": properties})
    (found,) = await ToolIndex([odd]).search(ToolQuery("thing"))
    assert found.tool is odd


async def test_the_score_of_a_tool_that_leads_every_ranking_is_one() -> None:
    tools = [tool("orders", "orders", orders={"description": "orders"}), tool("x", "y")]
    (found,) = await ToolIndex(tools).search(ToolQuery("orders"))
    assert found.score == 1.0
    assert [each.rank for each in found.sources] == [1, 1, 1]
    assert found.matched_terms == ("order",)


async def test_tools_with_equal_scores_keep_their_order() -> None:
    tools = [tool(f"t{chr(97 + number)}", "same words here") for number in range(9)]
    found = await ToolIndex(tools).search(ToolQuery("same words", limit=9))
    assert [each.tool for each in found] == tools
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)


async def test_meaning_adds_a_ranking() -> None:
    vectors = {"a: first": [1.0, 0.0], "b: second": [0.6, 0.8], "c: third": [-1.0, 0.0]}

    async def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [vectors.get(text, [1.0, 0.0]) for text in texts]

    tools = [tool("a", "first"), tool("b", "second"), tool("c", "third")]
    found = await ToolIndex(tools).search(ToolQuery("no word of them"), embed)
    assert [each.tool.name for each in found] == ["a", "b"]
    assert [(each.sources[0].source, each.sources[0].score) for each in found] == [
        ("vector", 1.0), ("vector", 0.6),
    ]  # fmt: skip
    # One of four rankings has them.
    assert found[0].score == 0.25
    assert math.isclose(found[1].score, (1 / (RRF_K + 2)) / (4 / (RRF_K + 1)), abs_tol=1e-6)


async def test_tools_are_embedded_once_and_queries_each_time() -> None:
    asked: list[int] = []

    async def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        asked.append(len(texts))
        return [[1.0] for _ in texts]

    index = ToolIndex([tool("a"), tool("b"), tool("c")])
    for _ in range(3):
        await index.search(ToolQuery("x"), embed)
    assert asked == [3, 1, 1, 1]


async def test_without_a_model_the_other_rankings_are_used() -> None:
    async def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        raise ModelError("model 'm' cannot be reached")

    index = ToolIndex([tool("orders"), tool("weather")])
    (found,) = await index.search(ToolQuery("orders"), embed)
    assert found.tool.name == "orders"
    # The model answers later: the tools are embedded then.
    later: list[int] = []

    async def answers(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        later.append(len(texts))
        return [[1.0] for _ in texts]

    assert len(await index.search(ToolQuery("orders"), answers)) == 2
    assert later == [2, 1]


@pytest.mark.parametrize("vector", [[0.0, 0.0], [-0.0, 0.0]])
async def test_vectors_of_zeros_are_like_nothing(vector: list[float]) -> None:
    async def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [vector for _ in texts]

    assert await ToolIndex([tool("a")]).search(ToolQuery("x"), embed) == []


async def test_a_least_score_leaves_out_the_rest() -> None:
    tools = [tool("orders", "orders", orders={}), tool("other", "about orders")]
    index = ToolIndex(tools)
    both = await index.search(ToolQuery("orders"))
    assert len(both) == 2
    for least in (both[1].score, both[0].score):
        kept = await index.search(ToolQuery("orders", min_score=least))
        assert [each.tool.name for each in kept] == [
            each.tool.name for each in both if each.score >= least
        ]
