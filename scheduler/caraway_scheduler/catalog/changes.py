"""Compares a new manifest with the present datasets; a pure function."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from caraway_core.ids import TableName
from caraway_core.manifest import Dataset
from caraway_scheduler.catalog.states import DatasetState


@dataclass(frozen=True, slots=True)
class CatalogChanges:
    """The datasets to add, to replace and to remove."""

    added: tuple[Dataset, ...]
    replaced: tuple[Dataset, ...]
    removed: tuple[TableName, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.replaced or self.removed)


def compare(present: Mapping[TableName, DatasetState], wanted: Iterable[Dataset]) -> CatalogChanges:
    """Compare the present datasets with those of the new manifest."""
    by_name = {TableName(dataset.name): dataset for dataset in wanted}
    return CatalogChanges(
        added=tuple(dataset for name, dataset in by_name.items() if name not in present),
        replaced=tuple(
            dataset
            for name, dataset in by_name.items()
            if name in present and present[name].dataset != dataset
        ),
        removed=tuple(name for name in present if name not in by_name),
    )
