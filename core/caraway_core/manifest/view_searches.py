"""Checks the searches in the views of a manifest, before anything is loaded."""

from collections.abc import Iterator, Sequence

from caraway_core.errors import InvalidQueryError, Problem
from caraway_core.loading import registry
from caraway_core.manifest.texts import names
from caraway_core.manifest.values.values import Manifest
from caraway_core.sqltext import table_calls
from caraway_core.sqltext.searching import FUNCTIONS, TEXT_SEARCH, VECTOR_SEARCH
from caraway_core.sqltext.table_calls import TableCall


def problems(manifest: Manifest) -> Iterator[Problem]:
    """Yield the problems of the calls of search functions in the texts of views.

    Each call must be well formed, and its table one with columns that can be searched so.
    """
    for view in manifest.views:
        try:
            for call in _searches(table_calls.read(view.sql, FUNCTIONS)):
                _check(call, manifest)
        except InvalidQueryError as exc:
            yield Problem(str(manifest.path), 0, f"view '{view.name}'", exc.message)


def _searches(calls: Sequence[TableCall]) -> Iterator[TableCall]:
    """Yield the calls that search a table, also those inside of others."""
    for call in calls:
        if call.function in (VECTOR_SEARCH, TEXT_SEARCH):
            yield call
        yield from _searches([each.call for each in call.arguments if each.call is not None])


def _check(call: TableCall, manifest: Manifest) -> None:
    """Check that a table can be searched; views may pass on what their tables have.

    Raises:
        InvalidQueryError: it cannot.
    """
    if not call.arguments or not isinstance(parts := call.arguments[0].value, tuple):
        return  # The engine says what is wrong with it.
    identity = names.identity(".".join(parts[-2:]))
    if any(names.identity(each.name) == identity for each in manifest.views):
        return
    datasets = [each for each in manifest.datasets if names.identity(each.name) == identity]
    at = f"{call.where}: {call.function}"
    if not datasets and len(parts) > 1:
        return  # It may be of a catalog.
    if not datasets:
        known = [each.name for each in manifest.datasets]
        known += [each.name for each in manifest.views]
        raise InvalidQueryError(f"{at}: {registry.unknown('dataset or view', identity, known)}")
    (dataset,) = datasets
    columns, key = [each.column for each in dataset.search.keywords], "full_text_search"
    if call.function == VECTOR_SEARCH:
        columns, key = [each.column for each in dataset.search.embedded], "embeddings"
    if not columns:
        message = f"'{dataset.name}' has no column with `{key}`; add it to a column"
        raise InvalidQueryError(f"{at}: {message}")
