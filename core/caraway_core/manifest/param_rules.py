"""Rules on params: which ones a connector or a place takes, and whether a place can be used.

`caraway validate` and the operator apply them. A running scheduler does not: there a dataset with
a wrong param fails by itself, and all others serve.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from caraway_core.errors import CarawayError, Problem
from caraway_core.loading import registry
from caraway_core.manifest import (
    embedder_names,
    known_params,
    model_params,
    names,
    references,
)
from caraway_core.manifest.document import Document, Location
from caraway_core.manifest.locations import STORE, split
from caraway_core.manifest.models import LOCAL_EMBEDDERS, LOCAL_PROVIDERS

_SECRET = "<secret>"
_PLACES: tuple[tuple[Location, str], ...] = (
    (("runtime", "scheduler"), "state_location"),
    (("runtime", "iceberg"), "location"),
    (("snapshots",), "location"),
)


def dataset(document: Document) -> Iterator[Problem]:
    """Yield the params of a dataset that its connector does not take."""
    try:
        connector = names.split_origin(str(document.value.get("from"))).connector
    except ValueError:
        return
    yield from _unknown(document, connector, known_params.OF_CONNECTOR.get(connector))


def embedding(document: Document) -> Iterator[Problem]:
    """Yield the params of an embedding model that its provider does not take."""
    try:
        provider = embedder_names.split_origin(str(document.value.get("from"))).provider
    except ValueError:
        return
    yield from _resources(document, provider, LOCAL_EMBEDDERS)
    yield from _unknown(document, provider, known_params.OF_EMBEDDER.get(provider))


def reranker(document: Document) -> Iterator[Problem]:
    """Yield the params of a reranker that its provider does not take."""
    try:
        provider = names.split_provider(str(document.value.get("from"))).connector
    except ValueError:
        return
    yield from _unknown(document, provider, known_params.OF_RERANKER.get(provider))


def model(document: Document) -> Iterator[Problem]:
    """Yield the params of a model that its provider does not take."""
    params = document.value.get("params")
    try:
        provider = names.split_provider(str(document.value.get("from"))).connector
    except ValueError:
        return
    yield from _resources(document, provider, LOCAL_PROVIDERS)
    for name in params if isinstance(params, dict) else ():
        if fault := model_params.fault(provider, str(name)):
            yield document.problem(("params", name), fault)


def _resources(document: Document, provider: str, local: frozenset[str]) -> Iterator[Problem]:
    if document.value.get("resources") is not None and provider not in local:
        message = f"a model of '{provider}' runs at its provider, so it has no 'resources'"
        yield document.problem(("resources",), f"{message}; remove them")


COMPONENTS: Mapping[str, Callable[[Document], Iterator[Problem]]] = {
    "datasets": dataset,
    "embeddings": embedding,
    "models": model,
    "rerankers": reranker,
}
"""The rule on the params of each section whose items have some."""


def _unknown(document: Document, kind: str, known: frozenset[str] | None) -> Iterator[Problem]:
    params = document.value.get("params")
    if known is None or not isinstance(params, dict):
        return
    for name in params:
        if name not in known:
            message = registry.unknown(f"{kind} param", str(name), known)
            yield document.problem(("params", name), message)


def manifest(document: Document) -> Iterator[Problem]:
    """Yield the places for results and snapshots that cannot be used."""
    for location, key in _PLACES:
        section: Any = document.value
        for step in location:
            section = section.get(step) if isinstance(section, dict) else None
        if not isinstance(section, dict) or not isinstance(section.get(key), str):
            continue
        params = section.get("params") or {}
        if isinstance(params, dict) and (fault := place_fault(section[key], params)):
            yield document.problem((*location, key), fault)


def place_fault(text: str, params: Mapping[str, object]) -> str:
    """Say why results cannot be kept at a location with these params; empty if they can.

    Nothing is sent. What depends on the value of a secret is not judged.
    """
    filled = {str(name): _plain(value) for name, value in params.items()}
    try:
        location = split(text)
        if location.scheme == STORE:
            filled.setdefault("token", _SECRET)
        find = registry.RESULT_PLACES.load(location.scheme)
        find(location.scheme, location.path, filled)
    except ValueError as exc:
        return str(exc)
    except CarawayError as exc:
        return "" if _SECRET in exc.message else exc.message
    return ""


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return _SECRET if references.has_references(str(value)) else str(value)
