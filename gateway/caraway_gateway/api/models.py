"""The routes of `/v1/models`."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from caraway_ai.loaded import LoadStatus
from caraway_assist.models.states import ModelState
from caraway_core.errors import CarawayError
from caraway_gateway.api import app_state
from caraway_gateway.api.component_errors import ComponentError
from caraway_serving import errors, listings, shapes
from caraway_serving.listings import ListingFormat

router = APIRouter(tags=["Models"])
_COLUMNS = ("id", "object", "owned_by", "datasets", "status", "error", "error_message")
_WORKER_COLUMNS = ("name", "description", "type", "is_llm")


class ModelCopy(BaseModel):
    """A copy of a model on an executor."""

    executor: str
    status: Literal["loading", "ready", "failed"]
    progress: str | None = None
    active: int


class ModelEntry(BaseModel):
    """A model of the listing. `status=true` adds the status and its error.

    For a model that runs here or on executors, it also adds `progress` while it is loaded, and
    its `copies`.
    """

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    datasets: list[str] | None = None
    metadata: dict[str, Any] | None = None
    status: LoadStatus = "initializing"
    error: ComponentError | None = None
    error_message: str | None = None
    progress: str | None = None
    copies: list[ModelCopy] | None = None


class ModelList(BaseModel):
    """The listing of models."""

    object: Literal["list"] = "list"
    data: list[ModelEntry]


@router.get(
    "/v1/models",
    response_model=ModelList,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def list_models(
    request: Request,
    status: Annotated[bool, Query(description="Add the status of each model.")] = False,
    format: Annotated[ListingFormat | None, Query(description="`json` (default) or `csv`.")] = None,
    metadata_fields: Annotated[
        str | None,
        Query(
            description="More fields of each model, separated by commas: "
            "`supports_responses_api`, `description`, or a key of its `metadata`."
        ),
    ] = None,
) -> Response:
    """List the models of the manifest; CSV has the same columns with and without `status`."""
    states = app_state.services(request).models.states.values()
    if listings.choose(format, request.headers.get("accept")) is ListingFormat.CSV:
        rows = [{**_entry(state, status), "datasets": ",".join(state.model.datasets)}
                for state in states]  # fmt: skip
        return listings.respond(rows, _COLUMNS, ListingFormat.CSV, None)
    fields = [name.strip() for name in (metadata_fields or "").split(",") if name.strip()]
    data = [{**_entry(state, status), **_metadata(state, fields)} for state in states]
    return JSONResponse({"object": "list", "data": data})


@router.get(
    "/v1/models/{name:path}",
    response_model=ModelEntry,
    responses={404: {"description": "There is no such model.", "content": shapes.ERROR}},
)
async def get_model(
    request: Request, name: Annotated[str, Path(description="A model of the manifest.")]
) -> Response:
    """Return one model with its status."""
    try:
        state = app_state.services(request).models.find(name)
    except CarawayError as exc:
        return errors.as_error(exc)
    return JSONResponse(_entry(state, with_status=True))


def _entry(state: ModelState, with_status: bool) -> dict[str, Any]:
    entry: dict[str, object] = {
        "id": state.name,
        "object": "model",
        "created": state.created_s,
        "owned_by": state.model.provider,
        "datasets": list(state.model.datasets) or None,
    }
    if with_status:
        error = state.error
        entry["status"] = state.status
        entry["error"] = ComponentError.from_error(error).model_dump() if error else None
        entry["error_message"] = error.message if error else None
        entry |= _running(state)
    return entry


def _running(state: ModelState) -> dict[str, object]:
    """Return the state of a model that runs on machines of the runtime."""
    found: dict[str, Any] = {"progress": state.progress} if state.progress else {}
    if state.copies is not None:
        found["copies"] = [
            {"executor": view.executor_id, "status": view.state, "progress": view.progress or None,
             "active": view.active}
            for view in state.copies.views()
        ]  # fmt: skip
    return found


def _metadata(state: ModelState, fields: list[str]) -> dict[str, object]:
    if not fields:
        return {}
    known = {
        **state.model.metadata,
        "description": state.model.description,
        "supports_responses_api": True,
    }
    return {"metadata": {name: known.get(name) for name in fields}}


class WorkerEntry(BaseModel):
    """A worker of the listing."""

    name: str
    description: str
    is_llm: bool


class WorkerList(BaseModel):
    """The listing of workers."""

    object: Literal["list"] = "list"
    data: list[WorkerEntry]


@router.get(
    "/v1/workers",
    response_model=WorkerList,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def list_workers(
    request: Request,
    format: Annotated[ListingFormat | None, Query(description="`json` (default) or `csv`.")] = None,
) -> Response:
    """List the workers of the manifest; those with `is_llm` can be named as a `model`."""
    workers = app_state.services(request).workers.declared
    rows: list[dict[str, Any]] = [
        {"name": each.name, "description": each.description or "", "is_llm": each.is_llm}
        for each in workers
    ]
    if listings.choose(format, request.headers.get("accept")) is ListingFormat.CSV:
        typed = [{**row, "type": each.type} for row, each in zip(rows, workers, strict=True)]
        return listings.respond(typed, _WORKER_COLUMNS, ListingFormat.CSV, None)
    return JSONResponse({"object": "list", "data": rows})
