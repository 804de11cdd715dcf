"""The indexes of a dataset as values for users."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from caraway_scheduler.catalog.states import DatasetState

IndexState = Literal["ready", "waiting", "off"]
"""`waiting`: it is built with the rows, or by the first search. `off`: searches compare all rows,
because the manifest says so or the dataset is not accelerated."""


@dataclass(frozen=True, slots=True)
class TableIndex:
    """An index over columns of a dataset."""

    kind: Literal["primary key", "lookup", "unique", "vector", "text"]
    columns: tuple[str, ...]
    state: IndexState


def indexes_of(state: DatasetState, *, are_built: bool) -> Iterator[TableIndex]:
    """Yield the indexes of a dataset; `are_built` is True if those for searches are built."""
    loaded: IndexState = "ready" if state.version is not None else "waiting"
    acceleration, search = state.dataset.acceleration, state.dataset.search
    if acceleration is not None:
        if acceleration.primary_key:
            yield TableIndex("primary key", acceleration.primary_key, loaded)
        for index in acceleration.indexes:
            yield TableIndex("unique" if index.is_unique else "lookup", index.columns, loaded)
    searched: IndexState = loaded if are_built else "waiting"
    if acceleration is None:
        searched = "off"
    for embedded in search.embedded:
        kept = searched if search.vectors.is_indexed else "off"
        yield TableIndex("vector", (embedded.column,), kept)
    if search.keywords:
        columns = tuple(each.column for each in search.keywords)
        yield TableIndex("text", columns, searched)
