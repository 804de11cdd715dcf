"""Routes of accelerated datasets: refresh them, change their `refresh_sql`, read their state."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from caraway_acceleration.service import Accelerations
from caraway_acceleration.standings.standings import DatasetStanding
from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_core.loading import registry
from caraway_gateway.api import app_state, dataset_names
from caraway_gateway.api.dataset_lag import DatasetLag
from caraway_serving import bodies, errors, parsing, scopes
from caraway_serving.errors import RefusedRequestError

router = APIRouter(tags=["Datasets"])
_Body = Mapping[str, object]
Name = Annotated[str, Path(description="A dataset of the manifest.")]


class Message(BaseModel):
    """A message for users."""

    message: str


def _answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    words = {
        200: "The setting was changed.",
        201: "The refresh started, or is queued behind the running one.",
        400: "The dataset is not accelerated, or the body is invalid.",
        403: "The key is read-only.",
        404: "The dataset does not exist.",
        408: "The body stopped arriving.",
        413: "The body is too large.",
        415: "The Content-Encoding is not supported.",
        503: "The runtime is starting or stopping.",
        507: "The state store is full.",
    }
    return {status: {"model": Message, "description": words[status]} for status in statuses}


def _body(**fields: str) -> dict[str, object]:
    """Describe a request body whose fields may all be omitted or null."""
    properties = {
        name: {"type": ["string", "null"], "description": meaning}
        for name, meaning in fields.items()
    }
    schema = {"type": "object", "properties": properties}
    return {"requestBody": {"required": False, "content": {"application/json": {"schema": schema}}}}


_CONFIGURED = ("refresh_sql",)
_REFRESH_SQL = "A SELECT over the dataset that selects the rows to load."
_OVERRIDES = _body(
    refresh_sql=_REFRESH_SQL,
    refresh_mode="`full` or `append`.",
    refresh_jitter_max="A duration; the refresh starts after a random part of it.",
)


@router.post(
    "/v1/datasets/{name}/acceleration/refresh",
    status_code=201,
    responses=_answers(201, 400, 403, 404, 408, 413, 415, 503, 507),
    openapi_extra=_OVERRIDES,
)
async def refresh(request: Request, name: Name) -> Response:
    """Refresh a dataset now, or after the refresh that is running."""
    return await _changed(request, name, _refresh, 201)


@router.patch(
    "/v1/datasets/{name}/acceleration",
    responses=_answers(200, 400, 403, 404, 408, 413, 415, 503, 507),
    openapi_extra=_body(refresh_sql=_REFRESH_SQL),
)
async def configure(request: Request, name: Name) -> Response:
    """Change the `refresh_sql` of a dataset until the next start; null leaves it unchanged."""
    return await _changed(request, name, _configure, 200)


@router.get(
    "/v1/datasets/{name}/acceleration", responses=_answers(400, 404, 503), response_model=None
)
async def standing(request: Request, name: Name) -> Response:
    """Return the current version of a dataset, and the state of its refresh."""
    accelerations = app_state.services(request).accelerations
    try:
        _, dataset_standing = dataset_names.find(name, accelerations.standing)
    except CarawayError as exc:
        return errors.as_message(exc)
    return JSONResponse(_document(dataset_standing))


async def _changed(request: Request, name: str, change: Any, status: int) -> Response:
    services = app_state.services(request)
    if not scopes.principal(request).may_write:
        return _refusal(403, "refreshing datasets needs a key that ends in :rw")
    try:
        table, _ = dataset_names.find(name, services.accelerations.standing)
        body = await bodies.read(request, services.max_body_bytes)
        wanted = await parsing.parsed(request, body, _parsed)
        message = await change(services.accelerations, table, wanted)
    except (RefusedRequestError, CarawayError) as exc:
        return errors.as_message(exc)
    except ValueError as exc:
        return _refusal(400, str(exc))
    except ClientDisconnect:
        return errors.CLIENT_GONE
    return JSONResponse({"message": message}, status)


async def _refresh(
    accelerations: Accelerations, name: TableName, body: Mapping[str, object]
) -> str:
    is_running = accelerations.standing(name).refreshes.running is not None
    await accelerations.refresh(name, body)
    follows = "is queued behind the running one" if is_running else "has started"
    return f"Dataset '{name}': the refresh {follows}."


async def _configure(
    accelerations: Accelerations, name: TableName, body: Mapping[str, object]
) -> str:
    if unknown := [field for field in body if field not in _CONFIGURED]:
        raise ValueError(registry.unknown("field", unknown[0][:100], _CONFIGURED))
    sql = body.get("refresh_sql")
    if sql is not None and not isinstance(sql, str):
        raise ValueError("refresh_sql must be a string or null")
    await accelerations.set_refresh_sql(name, sql)
    if sql is None:
        return f"Dataset '{name}': nothing was changed."
    return f"Dataset '{name}': refreshes use the new refresh_sql."


def _parsed(body: bytes) -> Mapping[str, object]:
    if not body.strip():
        return {}
    document = parsing.json(body)
    if not isinstance(document, dict):
        raise ValueError("the request body must be a JSON object")
    return document


def _document(dataset_standing: DatasetStanding) -> dict[str, object]:
    refreshes, version = dataset_standing.refreshes, dataset_standing.version
    document: dict[str, object] = {
        "dataset": refreshes.dataset,
        "status": dataset_standing.status,
        "refresh_mode": refreshes.settings.refresh_mode,
    }
    if version is not None:
        document["version"] = {
            "number": version.number,
            "rows": version.rows,
            "bytes": version.size_bytes,
            "made_at": version.made_at.isoformat(),
        }
    if dataset_standing.lag is not None:
        document["lag"] = DatasetLag.from_lag(dataset_standing.lag).model_dump(mode="json")
    if dataset_standing.changing is not None and version is not None:
        document["changes"] = {
            "log_entries": len(version.read_log),
            "log_rows": version.log_rows,
            "waiting": dataset_standing.changing.waiting,
        }
    if dataset_standing.is_loading:
        running = refreshes.running
        document["refresh"] = {
            "attempt": running.attempt if running is not None else 1,
            "rows": dataset_standing.stored.rows,
            "bytes": dataset_standing.stored.size_bytes,
            "rows_per_second": round(dataset_standing.rows_per_s, 1),
        }
    if refreshes.waiting is not None:
        document["is_asked_for_again"] = True
    if dataset_standing.error:
        document["error"] = dataset_standing.error
    return document


def _refusal(status: int, message: str) -> Response:
    return JSONResponse({"message": message}, status)
