"""Converts checked datasets and views into values."""

from pathlib import Path

from caraway_core.manifest.building import accelerating, searching
from caraway_core.manifest.shape import dataset as dataset_shapes
from caraway_core.manifest.shape.components import CatalogSection
from caraway_core.manifest.texts import names
from caraway_core.manifest.values.values import (
    VIEW,
    Dataset,
    DeclaredCatalog,
    DeclaredColumn,
    View,
)


def dataset(shape: dataset_shapes.DatasetSection, base_dir: Path) -> Dataset:
    """Build a dataset that was written in a file of the folder."""
    origin = names.split_origin(shape.from_)
    return Dataset(
        name=shape.name,
        source=shape.from_,
        connector=origin.connector,
        path=origin.path,
        base_dir=base_dir,
        description=shape.description,
        metadata=shape.metadata,
        access=shape.access,
        params=shape.params,
        columns=_columns(shape.columns),
        time_column=shape.time_column,
        time_format=shape.time_format,
        ready_state=shape.ready_state,
        unsupported_type_action=shape.unsupported_type_action,
        check_availability=shape.check_availability,
        replication_enabled=shape.replication is not None and shape.replication.enabled,
        acceleration=accelerating.acceleration(shape.acceleration, origin.connector),
        search=searching.search_columns(shape.columns, shape.vectors, shape.full_text_search),
    )


def catalog(shape: CatalogSection, base_dir: Path) -> DeclaredCatalog:
    """Build a source catalog that was written in a file of the folder."""
    origin = names.split_origin(shape.from_)
    return DeclaredCatalog(
        name=shape.name,
        source=shape.from_,
        connector=origin.connector,
        path=origin.path,
        base_dir=base_dir,
        description=shape.description,
        include=shape.include,
        params={**shape.params, **shape.dataset_params},
        access=shape.access,
    )


def view(shape: dataset_shapes.ViewSection, sql: str, base_dir: Path) -> View:
    """Build a view that was written in a file of the folder."""
    return View(
        shape.name,
        sql,
        base_dir,
        shape.description,
        shape.metadata,
        _columns(shape.columns),
        searching.search_columns(shape.columns, shape.vectors, shape.full_text_search),
    )


def accelerated_view(shape: dataset_shapes.ViewSection, sql: str, base_dir: Path) -> Dataset:
    """Build a view whose rows are kept: a dataset, whose source is the query."""
    return Dataset(
        name=shape.name,
        source=f"{VIEW}:{sql}",
        connector=VIEW,
        path=sql,
        base_dir=base_dir,
        description=shape.description,
        metadata=shape.metadata,
        columns=_columns(shape.columns),
        acceleration=accelerating.acceleration(shape.acceleration, VIEW),
        search=searching.search_columns(shape.columns, shape.vectors, shape.full_text_search),
    )


def _columns(shapes_: tuple[dataset_shapes.ColumnSection, ...]) -> tuple[DeclaredColumn, ...]:
    return tuple(DeclaredColumn(c.name, c.type, c.description) for c in shapes_)
