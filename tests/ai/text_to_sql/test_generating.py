"""A failing statement goes back to the model with the error, a bounded number of times."""

from typing import Any

import pytest

from caraway_ai.protocols import ChatRequest
from caraway_ai.text_to_sql import generating
from caraway_core.errors import (
    DatasetLoadingError,
    InvalidQueryError,
    ModelError,
    ModelInputError,
    OverloadedError,
    QueryError,
)
from tests.kit.scripted_chat import ScriptedChat
from tests.kit.scripted_provider import completion

ASKED = [{"role": "system", "content": "rules"}, {"role": "user", "content": "how many?"}]
SQL = "SELECT 1 AS x"


async def attempt(sql: str) -> str:
    if "bad" in sql:
        raise InvalidQueryError("column 'bad' not found")
    return f"rows of {sql}"


def chat(*said: str) -> ScriptedChat:
    return ScriptedChat([completion(each) for each in said])


async def test_the_first_that_works_is_the_answer() -> None:
    model = chat("SELECT bad", "", "SELECT good")
    written = await generating.generate(ASKED, model.chat, attempt)
    assert (written.sql, written.outcome, written.tries) == (
        "SELECT good", "rows of SELECT good", 3,
    )  # fmt: skip
    second, third = model.requests[1], model.requests[2]
    assert second["messages"][:2] == ASKED
    assert second["messages"][2] == {"role": "assistant", "content": "SELECT bad"}
    assert "column 'bad' not found" in second["messages"][3]["content"]
    assert len(third["messages"]) == 4
    assert model.requests[0]["temperature"] == 0


async def test_it_gives_up_with_the_last_error_and_the_query() -> None:
    model = chat("SELECT bad")
    with pytest.raises(ModelError, match="no query was produced") as caught:
        await generating.generate(ASKED, model.chat, attempt, most_tries=3)
    assert "column 'bad' not found" in caught.value.message
    assert "SELECT bad" in caught.value.message
    assert len(model.requests) == 3
    # The same again and again: chance must help.
    assert [request["temperature"] for request in model.requests] == [0, 0, 0.4]


async def test_a_repeated_query_is_not_shown_again() -> None:
    model = chat("SELECT bad", "SELECT bad", "SELECT good")
    written = await generating.generate(ASKED, model.chat, attempt, advise=lambda _: "use good")
    assert written.tries == 3
    _, second, third = (request["messages"] for request in model.requests)
    assert "use good" in second[-1]["content"] and second[-2]["content"] == "SELECT bad"
    assert third[0] == ASKED[0] and len(third) == len(ASKED)
    assert "SELECT bad" not in str(third)
    assert third[-1]["content"].startswith("how many?")
    assert "column 'bad' not found\nuse good" in third[-1]["content"]


async def test_a_model_that_writes_no_query() -> None:
    with pytest.raises(ModelError, match="wrote no query"):
        await generating.generate(ASKED, chat("").chat, attempt)


@pytest.mark.parametrize(
    "error", [OverloadedError("full", 3), DatasetLoadingError("loading"), QueryError("stopped")]
)
async def test_what_no_other_statement_can_mend_is_not_tried_again(error: QueryError) -> None:
    async def fails(sql: str) -> Any:
        raise error

    model = chat("SELECT 1")
    with pytest.raises(type(error)):
        await generating.generate(ASKED, model.chat, fails)
    assert len(model.requests) == 1


async def test_a_field_that_a_model_refuses_is_left_out() -> None:
    class Reasoning(ScriptedChat):
        async def chat(self, request: ChatRequest) -> Any:
            await super().chat(request)
            if "temperature" in request:
                raise ModelInputError("unsupported value: 'temperature' must be 1")
            return completion("SELECT 1")

    model = Reasoning([completion()])
    assert (await generating.generate(ASKED, model.chat, attempt)).sql == "SELECT 1"
    assert [sorted(request) for request in model.requests] == [
        ["max_tokens", "messages", "temperature"], ["max_tokens", "messages"],
    ]  # fmt: skip


async def test_a_query_that_was_cut_off_is_not_tried() -> None:
    cut = completion("SELECT good, ")
    cut["choices"][0]["finish_reason"] = "length"
    model = ScriptedChat([cut, completion("SELECT good")])
    written = await generating.generate(ASKED, model.chat, attempt)
    assert (written.sql, written.tries) == ("SELECT good", 2)
    assert "cut off" in model.requests[1]["messages"][-1]["content"]
    with pytest.raises(ModelError, match="the query was cut off after 1024 tokens"):
        await generating.generate(ASKED, ScriptedChat([cut]).chat, attempt)


async def test_parts_of_an_answer_are_one_text() -> None:
    said: Any = completion()
    thought = {"type": "thinking", "thinking": []}
    said["choices"][0]["message"]["content"] = [thought, {"type": "text", "text": "SELECT good"}]
    written = await generating.generate(ASKED, ScriptedChat([said]).chat, attempt)
    assert written.sql == "SELECT good"


@pytest.mark.parametrize(
    "text",
    [
        SQL,
        f"{SQL};",
        f"```sql\n{SQL};\n```",
        f"```\n{SQL}\n```\nThis query returns one.",
        f"Here is the query:\n\n```sql\n{SQL}\n```",
        f"Here is the query: {SQL}",
        f"<think>SELECT nothing? no</think>\n{SQL}",
        f"-- {SQL}",
        f"SQL: {SQL}",
        f"`{SQL}`",
        f"{SQL}; DROP TABLE orders",
        f"```sql\n{SQL}",
        f"```text\nlook\n```\n```sql\n{SQL}\n```",
    ],
)
def test_the_first_statement_is_returned(text: str) -> None:
    assert generating.first_statement(text) == SQL


@pytest.mark.parametrize("text", ["", "   ", "```sql\n```", "<think>SELECT 1"])
def test_there_may_be_none(text: str) -> None:
    assert generating.first_statement(text) == ""


def test_what_is_no_query_is_left_to_the_engine() -> None:
    assert generating.first_statement("DROP TABLE orders") == "DROP TABLE orders"
    insert = "INSERT INTO t SELECT 1"
    assert generating.first_statement(insert) == insert


def test_semicolons_in_texts_do_not_end_it() -> None:
    sql = "SELECT ';' AS a, \"b;\" FROM t -- c;"
    assert generating.first_statement(sql).startswith("SELECT ';' AS a, \"b;\" FROM t")
