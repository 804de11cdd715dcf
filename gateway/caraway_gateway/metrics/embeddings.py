"""Metrics of embedding models."""

from collections.abc import Iterable

from prometheus_client.core import Metric

from caraway_assist.embeddings.service import Embeddings
from caraway_core.process.durations import Labels
from caraway_serving.metric_families import Families

_LABELS: Labels = ("model",)
_LOAD_STATES = {"initializing": 0, "ready": 1, "error": 3}


def collect(embeddings: Embeddings, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    tallies = embeddings.tallies
    yield families.counter(
        "embeddings_requests", "Requests for vectors.", _LABELS, tallies.requests
    )
    yield families.counter(
        "embeddings_failures",
        "Requests for vectors that failed.",
        ("model", "error"),
        tallies.failures,
    )
    yield families.counter(
        "embeddings_texts", "Texts embedded for requests.", _LABELS, tallies.texts
    )
    yield families.counter(
        "embeddings_tokens", "Tokens embedded for requests.", _LABELS, tallies.tokens
    )
    yield families.counter(
        "embeddings_statement_texts",
        "Texts embedded for statements and loads in this process.",
        _LABELS,
        {(name,): count for name, count in embeddings.statement_texts.items()},
    )
    yield from _caches(embeddings, families)
    copies = {name: state.copies for name, state in embeddings.states.items() if state.copies}
    yield families.gauges(
        "embeddings_model_copies",
        "Copies of embedding models on executors that are ready.",
        _LABELS,
        {(name,): sum(view.state == "ready" for view in each.views())
         for name, each in copies.items()},
    )  # fmt: skip
    yield families.histogram(
        "embeddings_duration_ms",
        "Duration of requests for vectors, in milliseconds.",
        _LABELS,
        tallies.durations,
    )
    yield families.gauges(
        "embeddings_waiting_texts",
        "Texts of requests that are not answered yet.",
        _LABELS,
        {(name,): count for name, count in embeddings.waiting.items()},
    )
    yield families.gauges(
        "embeddings_load_state",
        "State of a model: 0 initializing, 1 ready, 3 error.",
        _LABELS,
        {
            (state.name,): _LOAD_STATES[state.status]
            for state in embeddings.states.values()
            if state.declared.is_declared
        },
    )


def _caches(embeddings: Embeddings, families: Families) -> Iterable[Metric]:
    caches = {("vectors",): embeddings.recent, ("answers",): embeddings.answers}
    kept = {label: cache for label, cache in caches.items() if cache is not None}
    label: Labels = ("kind",)
    yield families.gauges(
        "embeddings_cache_size_bytes",
        "Bytes in the caches of vectors and of answers.",
        label,
        {kind: cache.size_bytes for kind, cache in kept.items()},
    )
    yield families.gauges(
        "embeddings_cache_items_count",
        "Vectors and answers that are kept.",
        label,
        {kind: len(cache) for kind, cache in kept.items()},
    )
    stored = embeddings.stored_counts
    yield families.counter(
        "embeddings_cache_requests",
        "Lookups: of texts for vectors, of requests for answers.",
        label,
        {("stored",): stored[0], **{kind: cache.requests for kind, cache in kept.items()}},
    )
    yield families.counter(
        "embeddings_cache_hits",
        "Lookups that found something.",
        label,
        {("stored",): stored[1], **{kind: cache.hits for kind, cache in kept.items()}},
    )
