"""Metrics of embedding models."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import Metric

from caraway_assist.embeddings.kept_answers import KeptAnswers
from caraway_assist.embeddings.service import Embeddings
from caraway_plugins.embeddings.recent import RecentVectors
from caraway_serving.metric_families import Families, Table, counter, gauge, histogram

_LOAD_STATES = {"initializing": 0, "ready": 1, "error": 3}


def _ready_copies(of: Embeddings) -> Mapping[str, int]:
    copies = {name: state.copies for name, state in of.states.items() if state.copies}
    return {
        name: sum(view.state == "ready" for view in each.views()) for name, each in copies.items()
    }


def _load_states(of: Embeddings) -> Mapping[str, int]:
    declared = [state for state in of.states.values() if state.declared.is_declared]
    return {state.name: _LOAD_STATES[state.status] for state in declared}


def _by_cache(
    of: Embeddings, figure: Callable[[RecentVectors | KeptAnswers], int]
) -> Mapping[str, int]:
    caches = {"vectors": of.recent, "answers": of.answers}
    return {kind: figure(cache) for kind, cache in caches.items() if cache is not None}


_MODELS: Table[Embeddings] = (
    counter("embeddings_requests", "Requests for vectors.",
            "model", lambda of: of.tallies.requests),
    counter("embeddings_failures", "Requests for vectors that failed.",
            "model error", lambda of: of.tallies.failures),
    counter("embeddings_texts", "Texts embedded for requests.",
            "model", lambda of: of.tallies.texts),
    counter("embeddings_tokens", "Tokens embedded for requests.",
            "model", lambda of: of.tallies.tokens),
    counter("embeddings_statement_texts",
            "Texts embedded for statements and loads in this process.",
            "model", lambda of: of.statement_texts),
    gauge("embeddings_cache_size_bytes", "Bytes in the caches of vectors and of answers.",
          "kind", lambda of: _by_cache(of, lambda cache: cache.size_bytes)),
    gauge("embeddings_cache_items_count", "Vectors and answers that are kept.",
          "kind", lambda of: _by_cache(of, len)),
    counter("embeddings_cache_requests",
            "Lookups: of texts for vectors, of requests for answers.",
            "kind",
            lambda of: {
                "stored": of.stored_counts[0], **_by_cache(of, lambda cache: cache.requests)
            }),
    counter("embeddings_cache_hits", "Lookups that found something.",
            "kind",
            lambda of: {
                "stored": of.stored_counts[1], **_by_cache(of, lambda cache: cache.hits)
            }),
    gauge("embeddings_model_copies", "Copies of embedding models on executors that are ready.",
          "model", _ready_copies),
    histogram("embeddings_duration_ms", "Duration of requests for vectors, in milliseconds.",
              "model", lambda of: of.tallies.durations),
    gauge("embeddings_waiting_texts", "Texts of requests that are not answered yet.",
          "model", lambda of: of.waiting),
    gauge("embeddings_load_state", "State of a model: 0 initializing, 1 ready, 3 error.",
          "model", _load_states),
)  # fmt: skip


def collect(embeddings: Embeddings, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    return families.families_of(_MODELS, embeddings)
