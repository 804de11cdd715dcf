"""Runs a worker once: its statement, or its prompt."""

import time
from dataclasses import replace
from datetime import datetime

import orjson

from caraway_assist.models.service import Models
from caraway_assist.models.states import ModelCaller
from caraway_core.errors import CarawayError
from caraway_core.ids import PrincipalId
from caraway_core.manifest.values.workers import DeclaredWorker
from caraway_core.process.durations import Durations, Labels
from caraway_scheduler.history.tasks import TaskHistory, TaskRecord
from caraway_scheduler.queries.requests import QueryRequest
from caraway_scheduler.queries.service import QueryService
from caraway_serving import spans
from caraway_serving.access import Principal
from caraway_serving.spans import Span

TASK = "worker"
_ID = PrincipalId("worker")
_OF_STATEMENTS = Principal(_ID, may_write=True, is_admin=True)
"""Statements of the manifest may do everything: its author is trusted."""
_OF_PROMPTS = Principal(_ID, may_write=False)
"""Statements that a model generates from a prompt may only read."""
_LONGEST_OUTPUT = 8_192


class WorkerTallies:
    """Counters of runs; each label is the worker, and the outcome of a run."""

    def __init__(self) -> None:
        self.runs: dict[Labels, int] = {}
        self.durations = Durations()

    def count(self, worker: str, outcome: str, duration_ms: float) -> None:
        self.runs[worker, outcome] = self.runs.get((worker, outcome), 0) + 1
        self.durations.add((worker,), duration_ms)


class WorkerRuns:
    """Runs workers with the models and the data of this scheduler, and records the runs."""

    def __init__(self, models: Models, queries: QueryService, history: TaskHistory) -> None:
        self.tallies = WorkerTallies()
        self._models = models
        self._queries = queries
        self._history = history

    @property
    def are_refused(self) -> bool:
        """True if the process accepts no more work."""
        return self._queries.is_stopping

    async def run_worker(self, worker: DeclaredWorker, due: datetime) -> None:
        """Run a worker, and record how it ended.

        Raises:
            CarawayError: it failed.
        """
        span = replace(spans.start(None), principal=_ID)
        start_ns, error, output = time.time_ns(), None, None
        labels = {"worker": worker.name, "type": worker.type, "due": due.isoformat()}
        try:
            output = await self._done(worker, span, labels)
        except BaseException as exc:
            error = exc.message if isinstance(exc, CarawayError) else type(exc).__name__
            raise
        finally:
            captures = self._history.settings.captures_output
            outcome = "succeeded" if error is None else "failed"
            end_ns = time.time_ns()
            self.tallies.count(worker.name, outcome, (end_ns - start_ns) / 1e6)
            self._history.add(
                TaskRecord(
                    span=span,
                    task=TASK,
                    input=worker.sql or (worker.prompt if captures else None) or "",
                    start_ns=start_ns,
                    end_ns=end_ns,
                    error_message=error,
                    captured_output=output[:_LONGEST_OUTPUT] if captures and output else None,
                    labels=labels,
                    principal=_ID,
                )
            )

    async def _done(self, worker: DeclaredWorker, span: Span, labels: dict[str, str]) -> str:
        if worker.sql is None:
            return await self._prompted(worker, span)
        request = QueryRequest(
            sql=worker.sql,
            principal=_OF_STATEMENTS,
            span=span.child(),
            protocol="internal",
            cache_control="bypass",
        )
        answer = await self._queries.start(request)
        rows = 0
        try:
            async for batch in answer.rows:
                rows += batch.num_rows
        finally:
            answer.rows.close()
        labels["rows_produced"] = str(rows)
        return ""

    async def _prompted(self, worker: DeclaredWorker, span: Span) -> str:
        request = {"messages": [{"role": "user", "content": worker.prompt}]}
        answer = await self._models.chat(worker.name, request, ModelCaller(span, _OF_PROMPTS))
        said = answer["choices"][0]["message"].get("content")
        return said if isinstance(said, str) else orjson.dumps(said).decode()
