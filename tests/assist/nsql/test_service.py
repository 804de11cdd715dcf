"""Questions that a model turns into statements: which model, which tables, and how often asked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse

from caraway_ai.text_to_sql.described import TableSampling
from caraway_assist.nsql.service import Asker, DataQuestion, NsqlService
from caraway_core.errors import InvalidRequestError, ModelError
from caraway_core.ids import TableName
from caraway_serving import spans
from caraway_serving.access import ANONYMOUS
from tests.kit.runtime import Running, running
from tests.kit.scripted_provider import ScriptedProvider, completion, scripted

QUESTION = DataQuestion("How many orders are there?")
COUNT = "SELECT count(*) AS n FROM orders"
MANIFEST = """
    runtime: {{task_history: {{captured_output: truncated}}}}
    datasets:
      - {{from: memory:orders, name: orders, access: read_write, columns: [{columns}]}}
      - {{from: memory:people, name: people, columns: [{{name: id, type: bigint}}]}}
    functions:
      - {{name: twice, signature: {{args: [{{name: x, type: bigint}}], returns: bigint}}, body: x * 2}}
      - {{name: everyone, kind: table, body: SELECT id FROM people}}
"""  # noqa: E501 -- one function a line
COLUMNS = "{name: id, type: bigint}, {name: note, type: text}"
TOO_LONG = JSONResponse(
    {"error": {"code": "context_length_exceeded", "message": "too many tokens"}}, 400
)


class Asked:
    """The service of a runtime, and the provider that it asks."""

    def __init__(self, runtime: Running, provider: ScriptedProvider) -> None:
        self.runtime = runtime
        self.provider = provider
        self.nsql: NsqlService = runtime.services.nsql

    async def count(self, question: DataQuestion = QUESTION) -> Any:
        """Return the only value of the answer."""
        written = await self.nsql.run_question(question, asker())
        rows = [row async for batch in written.outcome.rows for row in batch.to_pylist()]
        return rows[0]["n"]

    def prompts(self) -> list[str]:
        return [each["messages"][0]["content"] for each in self.provider.requests]

    def tasks(self) -> list[dict[str, Any]]:
        rows = self.runtime.services.history.table(None).to_pylist()
        return [row for row in rows if row["task"] == "nsql"]


def asker() -> Asker:
    return Asker(ANONYMOUS, spans.start(None))


@asynccontextmanager
async def asking(
    folder: Path, *said: str, models: tuple[str, ...] = ("writer",), columns: str = COLUMNS
) -> AsyncIterator[Asked]:
    async with scripted() as provider:
        provider.answers = [completion(each) for each in said or (COUNT,)]
        params = f"{{endpoint: '{provider.url}', openai_api_key: k, max_retries: 0}}"
        listed = "".join(
            f"      - {{from: 'openai:x', name: {name}, params: {params}}}\n" for name in models
        )
        text = MANIFEST.format(columns=columns) + (f"    models:\n{listed}" if models else "")
        async with running(folder, text) as runtime:
            yield Asked(runtime, provider)


async def test_a_question_is_answered_and_recorded(tmp_path: Path) -> None:
    async with asking(tmp_path) as asked:
        assert await asked.count() == 0
        (task,) = asked.tasks()
        assert (task["input"], task["captured_output"]) == (QUESTION.text, COUNT)
        assert task["error_message"] is None
        assert "twice" in asked.prompts()[0]


async def test_a_statement_that_is_only_written_does_not_run(tmp_path: Path) -> None:
    fails_late = "SELECT 1 / (count(*) - count(*)) AS n FROM orders"
    async with asking(tmp_path, fails_late) as asked:
        assert await asked.nsql.write(QUESTION, asker()) == fails_late
        assert len(asked.provider.requests) == 1


async def test_the_model_is_chosen_by_its_name_or_because_it_is_the_only_one(
    tmp_path: Path,
) -> None:
    async with asking(tmp_path) as asked:
        for name in (None, "", "nql", "writer"):
            assert await asked.count(DataQuestion("How many?", name)) == 0
        with pytest.raises(InvalidRequestError, match="'other' not found; known: writer"):
            await asked.count(DataQuestion("How many?", "other"))
    async with asking(tmp_path, models=("one", "two")) as asked:
        with pytest.raises(InvalidRequestError, match="has several: one, two"):
            await asked.count(DataQuestion("How many?", "nql"))
        assert await asked.count(DataQuestion("How many?", "two")) == 0
    async with asking(tmp_path, models=()) as asked:
        with pytest.raises(InvalidRequestError, match="the manifest has no model"):
            await asked.count()


async def test_tables_are_described_once_until_the_catalog_changes(tmp_path: Path) -> None:
    async with asking(tmp_path) as asked:
        data: Any = asked.runtime.services.tools.data
        described: list[str] = []
        columns = data.columns

        async def noted(table: Any, *more: Any) -> Any:
            described.append(table)
            return await columns(table, *more)

        data.columns = noted
        for _ in range(3):
            await asked.count()
        first = len(described)
        await asked.count(DataQuestion("How many?", datasets=("orders",)))
        assert len(described) > first > 0, "other tables are described for themselves"
        again = len(described)
        await asked.count(DataQuestion("How many?", datasets=("orders",)))
        assert len(described) == again


async def test_a_prompt_that_is_too_long_is_sent_shorter(tmp_path: Path) -> None:
    columns = ", ".join(f"{{name: a_rather_long_name_{n}, type: text}}" for n in range(900))
    async with asking(tmp_path, columns=columns) as asked:
        asked.provider.answers = [TOO_LONG, TOO_LONG, completion(COUNT)]
        assert await asked.count() == 0
        assert len(asked.prompts()) == 3


async def test_a_model_that_never_takes_the_prompt_ends_the_question(tmp_path: Path) -> None:
    async with asking(tmp_path) as asked:
        asked.provider.answers = [TOO_LONG]
        with pytest.raises(ModelError):
            async with asyncio.timeout(60):
                await asked.count()
        (task,) = asked.tasks()
        assert task["error_message"] and task["captured_output"] is None


async def test_a_question_that_is_cancelled_is_recorded(tmp_path: Path) -> None:
    async with asking(tmp_path) as asked:
        begun = asyncio.Event()
        models: Any = asked.runtime.services.models

        async def chat(*_: Any) -> None:
            begun.set()
            await asyncio.Event().wait()

        models.chat = chat
        task = asyncio.create_task(asked.count())
        await begun.wait()
        task.cancel()
        await asyncio.wait((task,))
        assert task.cancelled()
        assert [each["error_message"] for each in asked.tasks()] == ["CancelledError"]


async def test_functions_are_told_only_with_the_tables_that_they_read(tmp_path: Path) -> None:
    async with asking(tmp_path) as asked:
        orders, people = TableName("orders"), TableName("people")

        def names(*tables: TableName) -> list[str]:
            return [each.name for each in asked.nsql.functions(tables)]

        assert names(orders) == ["twice"]
        assert names(orders, people) == ["twice", "everyone"]


async def test_unknown_datasets_are_refused_before_a_model_is_asked(tmp_path: Path) -> None:
    async with asking(tmp_path) as asked:
        for datasets, words in (((), "names none"), (("order",), "did you mean 'orders'")):
            with pytest.raises(InvalidRequestError, match=words):
                await asked.count(DataQuestion("How many?", datasets=datasets))
            with pytest.raises(InvalidRequestError, match=words):
                await asked.nsql.described(datasets, None, TableSampling(0), asker())
        assert asked.provider.requests == []
        tables = await asked.nsql.described(("people",), "writer", TableSampling(0), asker())
        assert [each.table.name for each in tables] == ["people"]
