"""Metrics of models; `model_load_state`, `model_active_count` and `model_load_duration_ms` are
emulated names."""

from collections.abc import Iterable, Mapping

from prometheus_client.core import Metric

from caraway_assist.models.limits import ModelLimits
from caraway_assist.models.service import Models
from caraway_assist.workers.running import WorkerRuns
from caraway_core.process.durations import Labels
from caraway_serving.metric_families import Families, Table, counter, gauge, histogram

_STATES = {"initializing": 0, "ready": 1, "error": 3}


def _copies(of: Models) -> Mapping[Labels, int]:
    hosted = {name: each.copies for name, each in of.states.items() if each.copies is not None}
    return {
        (name, state): sum(view.state == state for view in copies.views())
        for name, copies in hosted.items()
        for state in ("loading", "ready", "failed")
    }


def _limits(of: Models) -> Mapping[str, ModelLimits]:
    states = of.states.items()
    return {name: each.loaded.limits for name, each in states if each.loaded is not None}


_MODELS: Table[Models] = (
    gauge("model_load_state", "0 initializing, 1 ready, 3 error.",
          "model", lambda of: {name: _STATES[each.status] for name, each in of.states.items()}),
    gauge("model_active_count", "Models that are ready.",
          "", lambda of: sum(each.status == "ready" for each in of.states.values())),
    gauge("model_load_duration_ms", "Time of the latest load or recovery, in milliseconds.",
          "model", lambda of: {name: each.load_duration_ms for name, each in of.states.items()}),
    counter("model_load_errors", "Failed loads and checks.",
            "model", lambda of: {name: each.load_errors for name, each in of.states.items()}),
    gauge("llm_active_requests", "Calls of providers under way.",
          "model", lambda of: {name: each.active for name, each in _limits(of).items()}),
    gauge("llm_queued_requests", "Calls that wait for a place.",
          "model", lambda of: {name: each.queued for name, each in _limits(of).items()}),
    gauge("model_copies", "Copies on executors, by state.", "model state", _copies),
    counter("model_moves", "Calls that went to another copy, since theirs was lost.", "model",
            lambda of: {name: each.copies.moved for name, each in of.states.items()
                        if each.copies is not None}),
    counter("llm_requests", "Calls of providers.", "model", lambda of: of.tallies.requests),
    counter("llm_failures", "Calls of providers that failed.",
            "model code", lambda of: of.tallies.failures),
    counter("llm_prompt_tokens", "Tokens sent to models.",
            "model", lambda of: of.tallies.prompt_tokens),
    counter("llm_completion_tokens", "Tokens that models said.",
            "model", lambda of: of.tallies.completion_tokens),
    histogram("llm_request_duration_ms", "Time of calls, in milliseconds.",
              "model", lambda of: of.tallies.durations),
    histogram("llm_first_token_ms", "Time to the first token of streams, in milliseconds.",
              "model", lambda of: of.tallies.first_tokens),
    counter("worker_requests", "Calls that workers gave to models.",
            "worker model", lambda of: of.tallies.worker_requests),
    counter("worker_failovers", "Calls that a model failed, and another one took over.",
            "worker model", lambda of: of.tallies.worker_failovers),
)  # fmt: skip
_WORKERS: Table[WorkerRuns] = (
    counter("worker_runs", "Runs of workers on a cron.",
            "worker outcome", lambda of: of.tallies.runs),
    histogram("worker_run_duration_ms", "Time of those runs, in milliseconds.",
              "worker", lambda of: of.tallies.durations),
)  # fmt: skip


def collect(models: Models, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    return families.families_of(_MODELS, models)


def collect_workers(runs: WorkerRuns, families: Families) -> Iterable[Metric]:
    """Yield the metric families of workers that run on a cron."""
    return families.families_of(_WORKERS, runs)
