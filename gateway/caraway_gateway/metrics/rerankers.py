"""Metrics of rerankers."""

from collections.abc import Iterable

from prometheus_client.core import Metric

from caraway_assist.search.rerankers import RerankerModels
from caraway_serving.metric_families import Families, Table, counter, gauge, histogram

_LOAD_STATES = {"initializing": 0, "ready": 1, "error": 3}
_RERANKERS: Table[RerankerModels] = (
    counter("reranker_requests", "Calls of rerankers by statements.",
            "reranker", lambda of: of.tallies.requests),
    counter("reranker_failures", "Calls of rerankers that failed.",
            "reranker error", lambda of: of.tallies.failures),
    counter("reranker_texts", "Texts that rerankers judged.",
            "reranker", lambda of: of.tallies.texts),
    histogram("reranker_duration_ms", "Duration of calls of rerankers, in milliseconds.",
              "reranker", lambda of: of.tallies.durations),
    gauge("reranker_load_state",
          "State of the rerankers of the manifest: 0 initializing, 1 ready, 3 error.",
          "reranker",
          lambda of: {name: _LOAD_STATES[each.status] for name, each in of.states.items()}),
)  # fmt: skip


def collect(rerankers: RerankerModels, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    return families.families_of(_RERANKERS, rerankers)
