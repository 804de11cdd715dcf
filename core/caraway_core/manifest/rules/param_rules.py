"""Rules on params: which ones a connector or a place takes, and whether a place can be used.

`caraway validate` and the operator apply them. A running scheduler does not: there a dataset with
a wrong param fails by itself, and all others serve.
"""

from collections.abc import Callable, Iterator, Mapping

from caraway_core.errors import CarawayError, Problem
from caraway_core.loading import registry
from caraway_core.loading.declarations import Declaration
from caraway_core.manifest.documents.document import Document, Location
from caraway_core.manifest.secrets import references
from caraway_core.manifest.texts import names
from caraway_core.manifest.texts.locations import STORE, split
from caraway_core.manifest.values import search_columns
from caraway_core.manifest.values.declared_rerankers import CHAT_MODEL

_SECRET = "<secret>"
_WITHOUT_PARAMS = Declaration(params=frozenset())
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
    yield from _unknown(document, connector, registry.SOURCES.declared(connector))


def catalog(document: Document) -> Iterator[Problem]:
    """Yield the params of a source catalog that its connector does not take."""
    try:
        connector = names.split_origin(str(document.value.get("from"))).connector
    except ValueError:
        return
    declared = registry.CATALOG_SOURCES.declared(connector)
    for key in ("params", "dataset_params"):
        yield from _unknown(document, connector, declared, key)


def embedding(document: Document) -> Iterator[Problem]:
    """Yield the params of an embedding model that its provider does not take."""
    try:
        provider = search_columns.split_origin(str(document.value.get("from"))).provider
    except ValueError:
        return
    declared = registry.EMBEDDERS.declared(provider)
    yield from _resources(document, provider, declared)
    yield from _unknown(document, provider, declared)


def reranker(document: Document) -> Iterator[Problem]:
    """Yield the params of a reranker that its provider does not take."""
    try:
        provider = names.split_provider(str(document.value.get("from"))).connector
    except ValueError:
        return
    is_chat = provider == CHAT_MODEL
    declared = _WITHOUT_PARAMS if is_chat else registry.RERANKERS.declared(provider)
    yield from _unknown(document, provider, declared)


def model(document: Document) -> Iterator[Problem]:
    """Yield the params of a model that its provider does not take."""
    try:
        provider = names.split_provider(str(document.value.get("from"))).connector
    except ValueError:
        return
    declared = registry.MODEL_PROVIDERS.declared(provider)
    yield from _resources(document, provider, declared)
    yield from _unknown(document, provider, declared)


def _resources(document: Document, provider: str, declared: Declaration) -> Iterator[Problem]:
    if document.value.get("resources") is not None and not declared.is_local:
        message = f"a model of '{provider}' runs at its provider, so it has no 'resources'"
        yield document.problem(("resources",), f"{message}; remove them")


COMPONENTS: Mapping[str, Callable[[Document], Iterator[Problem]]] = {
    "catalogs": catalog,
    "datasets": dataset,
    "embeddings": embedding,
    "models": model,
    "rerankers": reranker,
}
"""The rule on the params of each section whose items have some."""


def _unknown(
    document: Document, kind: str, declared: Declaration, key: str = "params"
) -> Iterator[Problem]:
    params = document.value.get(key)
    for name in params if isinstance(params, dict) else ():
        if fault := registry.param_fault(kind, str(name), declared):
            yield document.problem((key, name), fault)


def manifest(document: Document) -> Iterator[Problem]:
    """Yield the places for results and snapshots that cannot be used."""
    for location, key in _PLACES:
        section: object = document.value
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
