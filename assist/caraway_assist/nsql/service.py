"""Answers questions with statements that a model writes, over the tables that the caller names."""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from caraway_ai.protocols import ChatCompletion, ChatRequest
from caraway_ai.text_to_sql import described, generating, prompting
from caraway_ai.text_to_sql.described import DescribedTable, TableSampling
from caraway_ai.text_to_sql.generating import WrittenQuery
from caraway_ai.text_to_sql.hints import error_hint
from caraway_ai.tools.data_access import KnownTable
from caraway_ai.tools.protocol import ToolCaller
from caraway_assist.models.service import Models
from caraway_assist.models.states import ModelCaller
from caraway_assist.tools import ToolService
from caraway_assist.tools.data import caller_of
from caraway_assist.tools.extending import allowed_tables
from caraway_core.errors import CarawayError, InvalidRequestError, ModelInputError, NotFoundError
from caraway_core.ids import TableName
from caraway_core.sqltext.sql_functions import SqlFunction
from caraway_scheduler.coordination.freshness import Mentions
from caraway_scheduler.dispatch.wrappers.functions import ManifestFunctions
from caraway_scheduler.history.tasks import TaskHistory, TaskRecord
from caraway_scheduler.queries.answers import StatementAnswer
from caraway_scheduler.queries.requests import QueryRequest
from caraway_scheduler.queries.service import QueryService
from caraway_serving.access import Principal
from caraway_serving.spans import Span

_SAMPLED_VALUES = 8
_ANY_MODEL = "nql"
"""The name that clients send where the user chose no model."""
_LEAST_CHARACTERS = 2_000
_KEPT = 16
"""Descriptions of tables, for questions that follow each other."""


@dataclass(frozen=True, slots=True)
class DataQuestion:
    """A question. `datasets` None means every table; otherwise no other one is read."""

    text: str
    model: str | None = None
    datasets: tuple[str, ...] | None = None
    has_samples: bool = False
    prompt_cache_key: str | None = None


@dataclass(frozen=True, slots=True)
class Asker:
    """The caller that asks a question."""

    principal: Principal
    span: Span
    user_agent: str = ""


class NsqlService:
    """Turns questions into statements that only read, and runs them."""

    def __init__(
        self,
        models: Models,
        tools: ToolService,
        queries: QueryService,
        history: TaskHistory,
        functions: ManifestFunctions,
    ) -> None:
        self._models = models
        self._history = history
        self._tools = tools
        self._queries = queries
        self._functions = functions
        self._described: OrderedDict[object, list[DescribedTable]] = OrderedDict()

    async def run_question(
        self, question: DataQuestion, asker: Asker
    ) -> WrittenQuery[StatementAnswer]:
        """Return the statement and its rows.

        Raises:
            InvalidRequestError: a model or a dataset of the question is not known.
            ModelError: the model failed, or wrote nothing that works.
            QueryError: the statement failed for a reason that is not its own.
        """

        async def attempt(sql: str, tables: frozenset[TableName], who: Asker) -> StatementAnswer:
            return await self._queries.start(_request(sql, tables, who))

        return await self._written(question, asker, attempt)

    async def write(self, question: DataQuestion, asker: Asker) -> str:
        """Return a statement that was planned, but did not run.

        Raises: as `run`.
        """

        async def attempt(sql: str, tables: frozenset[TableName], who: Asker) -> None:
            answer = await self._queries.start(_request(f"EXPLAIN {sql}", tables, who))
            answer.rows.close()

        return (await self._written(question, asker, attempt)).sql

    async def described(
        self,
        datasets: Sequence[str] | None,
        model: str | None,
        sampling: TableSampling,
        asker: Asker,
    ) -> list[DescribedTable]:
        """Return the description of the tables that a model would get.

        Raises:
            InvalidRequestError: a model or a dataset is not known.
        """
        caller = caller_of(asker.principal, asker.span)
        allowed = None if model is None else self._allowed(self._model(model))
        tables = self._tables(datasets, allowed, caller)
        limited = replace(caller, tables=frozenset(table.name for table in tables))
        return await described.describe(self._tools.data, limited, tables, sampling)

    def functions(self, tables: Collection[TableName]) -> Sequence[SqlFunction]:
        """Return the functions that read these tables only, as far as their texts show."""
        others = {each.name for each in self._tools.data.tables(ToolCaller())} - set(tables)
        mentions = Mentions(others, self._functions.texts)
        return [
            each
            for each in self._functions.declared
            if not (each.is_table and mentions.tables_of(each.name))
        ]

    async def _written(
        self,
        question: DataQuestion,
        asker: Asker,
        attempt: Callable[[str, frozenset[TableName], Asker], object],
    ) -> WrittenQuery[Any]:
        """Write a statement, and record that in the task history."""
        span = replace(asker.span.child(), principal=asker.principal.id)
        start_ns, error, sql = time.time_ns(), None, None
        try:
            written = await self._tried(question, replace(asker, span=span), attempt)
            sql = written.sql
            return written
        except BaseException as exc:
            error = exc.message if isinstance(exc, CarawayError) else type(exc).__name__
            raise
        finally:
            captures = self._history.settings.captures_output
            self._history.add(
                TaskRecord(
                    span=span,
                    task="nsql",
                    input=question.text if captures else "",
                    start_ns=start_ns,
                    end_ns=time.time_ns(),
                    error_message=error,
                    captured_output=sql if captures else None,
                    labels={"model": question.model or ""},
                    principal=asker.principal.id,
                )
            )

    async def _tried(
        self,
        question: DataQuestion,
        asker: Asker,
        attempt: Callable[[str, frozenset[TableName], Asker], Any],
    ) -> WrittenQuery[object]:
        name = self._model(question.model)
        caller = caller_of(asker.principal, asker.span)
        tables = self._tables(question.datasets, self._allowed(name), caller)
        readable = frozenset(table.name for table in tables)
        limited = replace(caller, tables=readable)
        sampling = TableSampling(_SAMPLED_VALUES if question.has_samples else 0)
        described_tables = await self._known(limited, tables, sampling)
        ranked: Sequence[DescribedTable] = described_tables
        model_caller = ModelCaller(asker.span, asker.principal, uses_tools=False)

        async def ask(request: ChatRequest) -> ChatCompletion:
            return await self._models.chat(name, {**request, "model": name}, model_caller)

        async def tried(sql: str) -> object:
            return await attempt(sql, readable, asker)

        functions = self.functions(readable)
        key = question.prompt_cache_key
        more = {"prompt_cache_key": key} if key else {}
        room = prompting.MOST_CHARACTERS
        while True:
            if ranked is described_tables and len(prompting.within(described_tables, room)) < len(
                described_tables
            ):
                ranked = await prompting.ranked(question.text, described_tables, self._tools.embed)
            shown = prompting.within(ranked, room)
            messages = prompting.messages(question.text, shown, functions)
            try:
                return await generating.generate(
                    messages,
                    ask,
                    tried,
                    more=more,
                    advise=partial(error_hint, tables=described_tables),
                )
            except ModelInputError as exc:
                room //= 2
                if exc.type != "context_length" or room < _LEAST_CHARACTERS:
                    raise

    async def _known(
        self, caller: ToolCaller, tables: Sequence[KnownTable], sampling: TableSampling
    ) -> list[DescribedTable]:
        """Describe tables, or return an earlier description of the same data."""
        key = self._queries.catalog()[0], caller.tables, sampling
        if (known := self._described.get(key)) is not None:
            self._described.move_to_end(key)
            return known
        described_tables = await described.describe(self._tools.data, caller, tables, sampling)
        if len(described_tables) == len(tables):
            self._described[key] = described_tables
            if len(self._described) > _KEPT:
                self._described.popitem(last=False)
        return described_tables

    def _model(self, name: str | None) -> str:
        if name and name in self._models.names:
            return name
        # A worker is a choice that a caller makes by its name.
        states = self._models.states
        if (not name or name == _ANY_MODEL) and len(states) == 1:
            return next(iter(states))
        listed = ", ".join(sorted(self._models.names)) or "none"
        if name and name != _ANY_MODEL:
            raise InvalidRequestError(f"model '{name[:100]}' not found; known: {listed}")
        if not states:
            raise InvalidRequestError("the manifest has no model; add one under 'models'")
        raise InvalidRequestError(f"name a 'model', for the manifest has several: {listed}")

    def _allowed(self, model: str) -> frozenset[TableName] | None:
        """Return the tables that every model which may answer may read; None means all."""
        limits = map(allowed_tables, self._models.members(model))
        given = [each for each in limits if each is not None]
        return frozenset.intersection(*given) if given else None

    def _tables(
        self,
        datasets: Sequence[str] | None,
        allowed: Collection[TableName] | None,
        caller: ToolCaller,
    ) -> Sequence[KnownTable]:
        """Return the tables that a question is about; no other one is read.

        Raises:
            InvalidRequestError: one is not known, or not for this model.
        """
        data = self._tools.data
        if datasets is None:
            tables = list(data.tables(caller))
        elif not datasets:
            raise InvalidRequestError("'datasets' names none; leave it out for all of them")
        else:
            try:
                tables = [data.find(name, caller) for name in dict.fromkeys(datasets)]
            except NotFoundError as exc:
                raise InvalidRequestError(f"'datasets': {exc.message}") from exc
        if allowed is None:
            return tables
        others = [table.name for table in tables if table.name not in allowed]
        if others and datasets is not None:
            raise InvalidRequestError(f"'datasets': the model may not read '{others[0]}'")
        return [table for table in tables if table.name in allowed]


def _request(sql: str, tables: frozenset[TableName], asker: Asker) -> QueryRequest:
    return QueryRequest(
        sql=sql,
        principal=asker.principal,
        span=asker.span.child(),
        user_agent=asker.user_agent,
        may_write=False,
        readable=tables,
    )
