"""The route that describes one dataset or view: lineage, indexes, and what the manifest says."""

import asyncio
from collections.abc import Iterator
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from caraway_acceleration.missing import NoDatasetError
from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_core.manifest import Dataset, View
from caraway_gateway.api import app_state, dataset_names
from caraway_gateway.services import Services
from caraway_scheduler.catalog import lineage
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.catalog.states import DatasetState, Status, ViewState
from caraway_serving import errors, scopes, shapes

router = APIRouter(tags=["Datasets"])
IndexState = Literal["ready", "waiting", "off"]
"""`waiting`: it is built with the rows, or by the first search. `off`: searches compare all rows,
because the manifest says so or the dataset is not accelerated."""


class IndexEntry(BaseModel):
    """An index of a dataset. `state` says whether searches and look-ups use it now."""

    kind: str
    columns: tuple[str, ...]
    state: IndexState


class DefinitionEntry(BaseModel):
    """A section of a file of the manifest, as YAML without comments and secrets."""

    file: str
    line: int
    text: str


class TableDetails(BaseModel):
    """A dataset or view. `definition` is null for keys that may not see the manifest."""

    name: str
    kind: str
    status: Status
    error_message: str | None = None
    description: str | None = None
    sql: str | None = None
    reads: list[str]
    read_by: list[str]
    indexes: list[IndexEntry]
    definition: DefinitionEntry | None = None


@router.get(
    "/v1/datasets/{name}/details",
    response_model=TableDetails,
    responses={
        404: {"description": "There is no such dataset or view.", "content": shapes.MESSAGE},
        503: {"description": "The runtime is starting or stopping.", "content": shapes.MESSAGE},
    },
)
async def details(
    request: Request, name: Annotated[str, Path(description="A dataset or view of the manifest.")]
) -> Response:
    """Describe a dataset or view: what it reads and what reads it, its indexes, its definition."""
    services = app_state.services(request)
    try:
        table, state = dataset_names.find(name, lambda each: _state(services.catalog, each))
    except CarawayError as exc:
        return errors.as_message(exc)
    document = _document(services, table, state)
    if scopes.principal(request).is_admin:
        document["definition"] = await _definition(services, table)
    return JSONResponse(document)


def _state(catalog: Catalog, name: TableName) -> DatasetState | ViewState:
    state = catalog.datasets.get(name) or catalog.views.get(name)
    if state is None:
        raise NoDatasetError(f"no dataset or view '{name}'; GET /v1/datasets lists the datasets")
    return state


def _document(
    services: Services, name: TableName, state: DatasetState | ViewState
) -> dict[str, object]:
    catalog, dispatch = services.catalog, services.dispatch
    table_lineage = lineage.of(name, catalog.datasets, catalog.views, dispatch.views())
    declared: Dataset | View
    indexes: list[IndexEntry] = []
    if isinstance(state, DatasetState):
        declared, kind = state.dataset, "dataset"
        are_built = services.search.warm_up.has_built(name)
        indexes += _indexes_of(state, are_built=are_built)
    else:
        declared, kind = state.view, "view"
    return {
        "name": name,
        "kind": kind,
        "status": state.status,
        "error_message": state.error.message if state.error is not None else None,
        "description": declared.description,
        "sql": lineage.query_of(declared),
        "reads": list(table_lineage.reads),
        "read_by": list(table_lineage.read_by),
        "indexes": [each.model_dump() for each in indexes],
        "definition": None,
    }


async def _definition(services: Services, name: TableName) -> dict[str, object] | None:
    manifest = services.manifest.current
    # Imported here: PyYAML is slow to load.
    from caraway_core.manifest.documents import excerpts

    excerpt = await asyncio.to_thread(excerpts.find, manifest.files, manifest.base_dir, name)
    return (
        None
        if excerpt is None
        else {"file": excerpt.file, "line": excerpt.line, "text": excerpt.text}
    )


def _indexes_of(state: DatasetState, *, are_built: bool) -> Iterator[IndexEntry]:
    """Yield the indexes of a dataset; `are_built` is True if those for searches are built."""
    loaded: IndexState = "ready" if state.version is not None else "waiting"
    acceleration, search = state.dataset.acceleration, state.dataset.search
    if acceleration is not None:
        if acceleration.primary_key:
            yield IndexEntry(kind="primary key", columns=acceleration.primary_key, state=loaded)
        for index in acceleration.indexes:
            yield IndexEntry(
                kind="unique" if index.is_unique else "lookup", columns=index.columns, state=loaded
            )
    searched: IndexState = loaded if are_built else "waiting"
    if acceleration is None:
        searched = "off"
    for embedded in search.embedded:
        kept = searched if search.vectors.is_indexed else "off"
        yield IndexEntry(kind="vector", columns=(embedded.column,), state=kept)
    if search.keywords:
        columns = tuple(each.column for each in search.keywords)
        yield IndexEntry(kind="text", columns=columns, state=searched)
