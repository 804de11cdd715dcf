"""Metrics of models; `model_load_state`, `model_active_count` and `model_load_duration_ms` are
emulated names."""

from collections.abc import Iterable

from prometheus_client.core import Metric

from caraway_assist.models.service import Models
from caraway_assist.workers.running import WorkerRuns
from caraway_serving.metric_families import Families

_STATES = {"initializing": 0, "ready": 1, "error": 3}


def collect(models: Models, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    states, tallies = models.states, models.tallies
    label = ("model",)
    yield families.gauges(
        "model_load_state", "0 initializing, 1 ready, 3 error.", label,
        {(name,): _STATES[state.status] for name, state in states.items()},
    )  # fmt: skip
    yield families.gauge(
        "model_active_count", "Models that are ready.",
        sum(state.status == "ready" for state in states.values()),
    )  # fmt: skip
    yield families.gauges(
        "model_load_duration_ms", "Time of the latest load or recovery, in milliseconds.", label,
        {(name,): state.load_duration_ms for name, state in states.items()},
    )  # fmt: skip
    yield families.counter(
        "model_load_errors", "Failed loads and checks.", label,
        {(name,): state.load_errors for name, state in states.items()},
    )  # fmt: skip
    loaded = {name: state.loaded for name, state in states.items() if state.loaded is not None}
    yield families.gauges(
        "llm_active_requests", "Calls of providers under way.", label,
        {(name,): each.limits.active for name, each in loaded.items()},
    )  # fmt: skip
    yield families.gauges(
        "llm_queued_requests", "Calls that wait for a place.", label,
        {(name,): each.limits.queued for name, each in loaded.items()},
    )  # fmt: skip
    hosted = {name: each.copies for name, each in states.items() if each.copies is not None}
    yield families.gauges(
        "model_copies", "Copies on executors, by state.", ("model", "state"),
        {(name, state): sum(view.state == state for view in copies.views())
         for name, copies in hosted.items() for state in ("loading", "ready", "failed")},
    )  # fmt: skip
    yield families.counter(
        "model_moves", "Calls that went to another copy, since theirs was lost.", label,
        {(name,): copies.moved for name, copies in hosted.items()},
    )  # fmt: skip
    yield families.counter("llm_requests", "Calls of providers.", label, tallies.requests)
    yield families.counter(
        "llm_failures", "Calls of providers that failed.", ("model", "code"), tallies.failures
    )
    yield families.counter(
        "llm_prompt_tokens", "Tokens sent to models.", label, tallies.prompt_tokens
    )
    yield families.counter(
        "llm_completion_tokens", "Tokens that models said.", label, tallies.completion_tokens
    )
    yield families.histogram(
        "llm_request_duration_ms", "Time of calls, in milliseconds.", label, tallies.durations
    )
    yield families.histogram(
        "llm_first_token_ms", "Time to the first token of streams, in milliseconds.", label,
        tallies.first_tokens,
    )  # fmt: skip
    of_worker = ("worker", "model")
    yield families.counter(
        "worker_requests", "Calls that workers gave to models.", of_worker, tallies.worker_requests
    )
    yield families.counter(
        "worker_failovers", "Calls that a model failed, and another one took over.", of_worker,
        tallies.worker_failovers,
    )  # fmt: skip


def collect_workers(runs: WorkerRuns, families: Families) -> Iterable[Metric]:
    """Yield the metric families of workers that run on a cron."""
    yield families.counter(
        "worker_runs", "Runs of workers on a cron.", ("worker", "outcome"), runs.tallies.runs
    )
    yield families.histogram(
        "worker_run_duration_ms", "Time of those runs, in milliseconds.", ("worker",),
        runs.tallies.durations,
    )  # fmt: skip
