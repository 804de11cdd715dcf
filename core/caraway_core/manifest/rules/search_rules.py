"""Rules between the keys of search, and what of it changes nothing.

They read the plain document, as those of `rules`.
"""

from collections.abc import Callable, Iterator, Mapping

from caraway_core.errors import Problem
from caraway_core.loading import registry
from caraway_core.manifest.building import searching
from caraway_core.manifest.documents.document import Document, Location
from caraway_core.manifest.texts import column_types, scalars
from caraway_core.manifest.values.search_columns import BUILTIN, Chunking

_FOREIGN_VECTORS = ("duckdb",)
_FOREIGN_KEYWORDS = ("tantivy",)
_SERVICES = ("elasticsearch", "s3_vectors")
_TEXT_TYPES = ("string", "large_string")


def dataset(document: Document) -> Iterator[Problem]:
    """Yield the contradictions between the keys of search in a dataset or view."""
    for index, column in enumerate(_list(document.value.get("columns"))):
        if isinstance(column, dict):
            yield from _column(document, ("columns", index), column)
    yield from _generated(document)
    yield from _engine(document, "vectors", searching.VECTOR_PARAMS, _FOREIGN_VECTORS)
    yield from _engine(document, "full_text_search", searching.KEYWORD_PARAMS, _FOREIGN_KEYWORDS)


def view(document: Document) -> Iterator[Problem]:
    """Yield the contradictions between the keys of search in a view."""
    yield from dataset(document)
    for index, column in enumerate(_list(document.value.get("columns"))):
        if isinstance(column, dict) and column.get("type") is not None:
            message = "a view has the types of its query; remove 'type', or cast in the query"
            yield document.problem(("columns", index, "type"), message)


def embedding(document: Document) -> Iterator[Problem]:
    """Yield the contradictions between the keys of an embedding model."""
    name = document.value.get("name")
    if isinstance(name, str) and name.startswith(f"{BUILTIN}:") and name != _origin(document):
        message = f"names that begin with '{BUILTIN}:' are those of built-in models"
        yield document.problem(("name",), message)


def notices(document: Document) -> Iterator[str]:
    """Yield a notice for each key of search that is taken otherwise, or not at all."""
    for key, foreign in (
        ("vectors", _FOREIGN_VECTORS),
        ("full_text_search", _FOREIGN_KEYWORDS),
    ):
        section = _mapping(document.value.get(key))
        if section.get("engine") in foreign:
            message = f"'{section['engine']}' means the engine '{searching.ENGINE}' here"
            yield str(document.problem((key, "engine"), message))
            if section.get("params"):
                message = f"have no effect: they are those of '{section['engine']}'"
                yield str(document.problem((key, "params"), message))
    columns = [each for each in _list(document.value.get("columns")) if isinstance(each, dict)]
    if _is_on(document.value.get("vectors")) and not any(
        each.get("embeddings") for each in columns
    ):
        message = "has no effect: no column has 'embeddings'"
        yield str(document.problem(("vectors",), message))
    if _is_on(document.value.get("full_text_search")) and not any(
        _is_on(each.get("full_text_search")) for each in columns
    ):
        message = "has no effect: no column has 'full_text_search'"
        yield str(document.problem(("full_text_search",), message))


def _column(document: Document, at: Location, column: dict[str, object]) -> Iterator[Problem]:
    embeddings = _list(column.get("embeddings"))
    if len(embeddings) > 1:
        message = "a column has one embedding; select it twice in a view for a second one"
        yield document.problem((*at, "embeddings", 1), message)
    if (embeddings or _is_on(column.get("full_text_search"))) and not _is_text(column.get("type")):
        message = f"only text can be searched, and column '{column.get('name')}' is none"
        yield document.problem((*at, "type"), message)
    for index, each in enumerate(embeddings):
        chunking = _mapping(each.get("chunking")) if isinstance(each, dict) else {}
        where = (*at, "embeddings", index, "chunking", "overlap_size")
        target = chunking.get("target_chunk_size", Chunking().target_size)
        overlap = chunking.get("overlap_size", 0)
        if isinstance(target, int) and isinstance(overlap, int) and 0 < target <= overlap:
            message = f"must be less than 'target_chunk_size', which is {target}"
            yield document.problem(where, message)


def _generated(document: Document) -> Iterator[Problem]:
    """Two columns may not generate columns of one name."""
    columns = [each for each in _list(document.value.get("columns")) if isinstance(each, dict)]
    embedded = {str(each.get("name")) for each in columns if each.get("embeddings")}
    for index, column in enumerate(_list(document.value.get("columns"))):
        name = str(column.get("name")) if isinstance(column, dict) else ""
        for suffix in ("_embedding", "_offset"):
            if name.removesuffix(suffix) in embedded - {name} and name in embedded:
                message = f"column '{name}' is generated; it cannot be embedded itself"
                yield document.problem(("columns", index, "embeddings"), message)


def _engine(
    document: Document, key: str, params: tuple[str, ...], foreign: tuple[str, ...]
) -> Iterator[Problem]:
    section = _mapping(document.value.get(key))
    engine = section.get("engine")
    if isinstance(engine, str) and engine in _SERVICES:
        message = (
            f"the engine '{engine}' is refused: vectors are kept with their dataset; remove it"
        )
        yield document.problem((key, "engine"), message)
    elif isinstance(engine, str) and engine not in foreign and engine != searching.ENGINE:
        known = dict.fromkeys((searching.ENGINE, *foreign), "")
        yield document.problem((key, "engine"), registry.unknown("engine", engine, known))
    elif engine not in foreign:
        yield from _params(document, key, _mapping(section.get("params")), params)


def _params(
    document: Document, key: str, params: Mapping[str, object], known: tuple[str, ...]
) -> Iterator[Problem]:
    for name, value in params.items():
        where = (key, "params", name)
        if name not in known:
            yield document.problem(where, registry.unknown(f"{key} param", str(name), known))
        elif value is not None and not isinstance(value, list | dict):
            try:
                _READ[name](scalars.written(value))
            except ValueError as exc:
                yield document.problem(where, str(exc))


_READ: Mapping[str, Callable[[str], object]] = {
    "metric": searching.metric,
    "recall": searching.recall,
    "language": searching.language,
}


def _is_text(written: object) -> bool:
    if not isinstance(written, str):
        return True
    try:
        return str(column_types.arrow_type(written)) in _TEXT_TYPES
    except ValueError:
        return True  # Its shape is refused elsewhere.


def _origin(document: Document) -> str:
    return str(document.value.get("from")).replace(" ", "")


def _is_on(section: object) -> bool:
    return isinstance(section, dict) and section.get("enabled") is not False


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
