"""The routes of the snapshots of accelerated datasets: list them, and choose the current one."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from caraway_acceleration.snapshot_requests import SnapshotRequests
from caraway_acceleration.upkeep.snapshots import SnapshotInfo
from caraway_core.errors import CarawayError, InvalidRequestError
from caraway_core.loading import registry
from caraway_gateway.api import app_state, dataset_names
from caraway_serving import bodies, errors, parsing, scopes, shapes
from caraway_serving.errors import RefusedRequestError

router = APIRouter(tags=["Datasets"])
_PATH = "/v1/datasets/{name}/acceleration/snapshots"
_FIELDS = ("snapshot_id",)
Name = Annotated[str, Path(description="A dataset of the manifest.")]


class DatasetSnapshot(BaseModel):
    """A snapshot; `row_count` is null if its description cannot be read."""

    snapshot_id: int
    timestamp_ms: int
    location: str
    checksum: str
    checksum_algorithm: str
    size_bytes: int
    row_count: int | None
    is_current: bool


class DatasetSnapshotList(BaseModel):
    """The last snapshots of a dataset, the oldest first."""

    dataset_name: str
    location: str
    last_updated_ms: int
    current_snapshot_id: int | None
    snapshots: list[DatasetSnapshot]


_STATUSES = {
    400: "The dataset has no snapshots, or the request is invalid.",
    403: "The key is read-only.",
    404: "The dataset or the snapshot does not exist.",
    408: "The body stopped arriving.",
    413: "The body is too large.",
    415: "The Content-Encoding is not supported.",
    500: "The snapshot is damaged.",
    503: "The runtime is starting, or the dataset changed meanwhile.",
    504: "It took too long.",
    507: "A disk is full.",
}
_CHOICE = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["snapshot_id"],
                    "properties": {"snapshot_id": {"type": "integer"}},
                }
            }
        },
    }
}


def _failures(*statuses: int) -> dict[int | str, dict[str, object]]:
    return {
        status: {"description": _STATUSES[status], "content": shapes.MESSAGE} for status in statuses
    }


@router.get(
    _PATH,
    response_model=DatasetSnapshotList,
    operation_id="list_dataset_snapshots",
    responses=_failures(400, 404, 500, 503),
)
async def list_snapshots(
    request: Request,
    name: Name,
    limit: Annotated[int, Query(ge=1, le=1000, description="The most snapshots.")] = 10,
) -> Response:
    """List the last snapshots of a dataset."""
    services = app_state.services(request)
    requests = services.accelerations.snapshots
    try:
        table, _ = dataset_names.find(name, services.accelerations.standing)
        snapshot_infos = await requests.listed(table, limit)
    except CarawayError as exc:
        return errors.as_message(exc)
    current = [each.number for each in snapshot_infos if each.is_current]
    return JSONResponse(
        {
            "dataset_name": table,
            "location": _location(requests),
            "last_updated_ms": max((each.made_ms for each in snapshot_infos), default=0),
            "current_snapshot_id": current[0] if current else None,
            "snapshots": [_document(each, requests) for each in snapshot_infos],
        }
    )


@router.get(
    _PATH + "/{snapshot_id}",
    response_model=DatasetSnapshot,
    operation_id="get_dataset_snapshot",
    responses=_failures(400, 404, 500, 503),
)
async def get_snapshot(
    request: Request,
    name: Name,
    snapshot_id: Annotated[int, Path(ge=0, le=2**63 - 1, description="The id of a snapshot.")],
) -> Response:
    """Return one snapshot of a dataset."""
    services = app_state.services(request)
    requests = services.accelerations.snapshots
    try:
        table, _ = dataset_names.find(name, services.accelerations.standing)
        return JSONResponse(_document(await requests.info(table, snapshot_id), requests))
    except CarawayError as exc:
        return errors.as_message(exc)


@router.post(
    _PATH + "/current",
    operation_id="set_current_snapshot",
    responses={
        200: {"description": "The dataset is read from it.", "content": shapes.MESSAGE},
        **_failures(400, 403, 404, 408, 413, 415, 500, 503, 504, 507),
    },
    openapi_extra=_CHOICE,
)
async def choose_snapshot(request: Request, name: Name) -> Response:
    """Replace the rows of a dataset by those of a snapshot, and start from it from now on."""
    services = app_state.services(request)
    if not scopes.principal(request).may_write:
        message = "choosing snapshots needs a key that ends in :rw"
        return JSONResponse({"message": message}, 403)
    try:
        table, _ = dataset_names.find(name, services.accelerations.standing)
        body = await bodies.read(request, services.max_body_bytes)
        number = await parsing.parsed(request, body, _parsed)
        await services.accelerations.snapshots.choose(table, number)
    except (RefusedRequestError, CarawayError) as exc:
        return errors.as_message(exc)
    except ClientDisconnect:
        return errors.CLIENT_GONE
    message = f"Dataset '{table}' is read from the snapshot {number}."
    return JSONResponse({"message": message})


def _parsed(body: bytes) -> int:
    document = parsing.json(body)
    if not isinstance(document, dict):
        raise InvalidRequestError("the request body must be a JSON object")
    for field in document:
        if field not in _FIELDS:
            raise InvalidRequestError(registry.unknown("field", field[:100], _FIELDS))
    number = document.get("snapshot_id")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**63:
        raise InvalidRequestError("snapshot_id must be the id of a snapshot, a positive integer")
    return number


def _document(snapshot_info: SnapshotInfo, requests: SnapshotRequests) -> dict[str, object]:
    return {
        "snapshot_id": snapshot_info.number,
        "timestamp_ms": snapshot_info.made_ms,
        "location": f"{_location(requests)}/{snapshot_info.key}",
        "checksum": snapshot_info.checksum,
        "checksum_algorithm": "SHA256",
        "size_bytes": snapshot_info.size_bytes,
        "row_count": snapshot_info.rows,
        "is_current": snapshot_info.is_current,
    }


def _location(requests: SnapshotRequests) -> str:
    return requests.place.title.rstrip("/") if requests.place is not None else ""
