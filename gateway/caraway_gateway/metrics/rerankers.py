"""Metrics of rerankers."""

from collections.abc import Iterable

from prometheus_client.core import Metric

from caraway_assist.search.rerankers import RerankerModels
from caraway_core.process.durations import Labels
from caraway_serving.metric_families import Families

_LABELS: Labels = ("reranker",)
_LOAD_STATES = {"initializing": 0, "ready": 1, "error": 3}


def collect(rerankers: RerankerModels, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    tallies = rerankers.tallies
    yield families.counter(
        "reranker_requests", "Calls of rerankers by statements.", _LABELS, tallies.requests
    )
    yield families.counter(
        "reranker_failures",
        "Calls of rerankers that failed.",
        ("reranker", "error"),
        tallies.failures,
    )
    yield families.counter("reranker_texts", "Texts that rerankers judged.", _LABELS, tallies.texts)
    yield families.histogram(
        "reranker_duration_ms",
        "Duration of calls of rerankers, in milliseconds.",
        _LABELS,
        tallies.durations,
    )
    yield families.gauges(
        "reranker_load_state",
        "State of the rerankers of the manifest: 0 initializing, 1 ready, 3 error.",
        _LABELS,
        {(name,): _LOAD_STATES[state.status] for name, state in rerankers.states.items()},
    )
