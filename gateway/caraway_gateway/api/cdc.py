"""The route that receives change events and answers once they are applied."""

import asyncio
import logging
import re
from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from caraway_acceleration.changes.ingesting import ChangesRefusedError
from caraway_acceleration.missing import NoDatasetError, NotAcceleratedError
from caraway_acceleration.service import Accelerations
from caraway_acceleration.versions import requests as applied_requests
from caraway_core.changes import Changes
from caraway_core.errors import CarawayError, outcomes
from caraway_core.errors.outcomes import FailureKind
from caraway_core.ids import TableName
from caraway_gateway.api import app_state, dataset_names
from caraway_gateway.api.cdc_documentation import INGEST
from caraway_gateway.services import Services
from caraway_plugins.changes import decoding
from caraway_plugins.changes.target import ChangeTarget
from caraway_serving import bodies, errors, parsing, scopes
from caraway_serving.errors import RefusedRequestError

router = APIRouter(tags=["Datasets"])
logger = logging.getLogger(__name__)
BUDGET_S = 60.0
"""The time limit for reading the events, waiting for room and applying them."""
_GRACE_S = 2.0
"""The code that applies events has its own limit and knows the outcome, so it fires first."""
_INLINE_BYTES = 16 * 1024
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,255}")
_NOT_HERE = (NoDatasetError, NotAcceleratedError, ChangesRefusedError)
Name = Annotated[str, Path(description="A dataset that takes changes.")]
_DECODING = asyncio.Semaphore(2)
"""Limits concurrent decoding, because events need many times the memory of their text."""


@router.post("/v1/datasets/{name}/cdc", **INGEST)
async def ingest(request: Request, name: Name) -> Response:
    """Apply change events to a dataset, all or none; they are durable once this answers."""
    services = app_state.services(request)
    try:
        if not scopes.principal(request).may_write:
            raise RefusedRequestError(403, "change events need a key that ends in :rw")
        applied = await _taken(request, services, name)
    except (RefusedRequestError, CarawayError) as exc:
        if isinstance(exc, CarawayError) and outcomes.of(exc).kind is FailureKind.INTERNAL:
            logger.error("change events failed", exc_info=exc)
        return errors.as_message(exc)
    except ClientDisconnect:
        return errors.CLIENT_GONE
    return JSONResponse({"applied": applied, "dataset": name})


async def _taken(request: Request, services: Services, name: str) -> int:
    # Before the body: a client learns early that it sends in vain.
    table, target = _target(services.accelerations, name)
    headers = request.headers
    decoding.form(headers.get("content-type"))
    request_id = _request_id(headers.get("idempotency-key"))
    body = await bodies.read(request, services.max_body_bytes)
    try:
        async with asyncio.timeout(BUDGET_S + _GRACE_S):
            return await _applied(request, services.accelerations, table, target, body, request_id)
    except TimeoutError:
        raise RefusedRequestError(
            504,
            f"the events were not applied within {BUDGET_S:.0f} s, but may be applied later; "
            "send them again",
        ) from None


async def _applied(
    request: Request,
    accelerations: Accelerations,
    table: TableName,
    target: ChangeTarget,
    body: bytes,
    request_id: str | None,
) -> int:
    clock = asyncio.get_running_loop().time
    begun = clock()
    changes = await _decoded(request, body, target)
    if not changes.rows.num_rows:
        return changes.received
    if request_id is not None:
        content = (request.headers.get("content-type") or "").encode()
        if len(body) <= _INLINE_BYTES:
            request_id = applied_requests.token(request_id, content, body)
        else:
            request_id = await asyncio.to_thread(applied_requests.token, request_id, content, body)
    left_s = BUDGET_S - (clock() - begun)
    return await accelerations.apply(table, changes, request_id, left_s)


async def _decoded(request: Request, body: bytes, target: ChangeTarget) -> Changes:
    headers = request.headers
    content_type = headers.get("content-type")
    is_json = decoding.form(content_type) == "json"
    # Decoding may have to wait for the registry of Avro schemas.
    if len(body) <= _INLINE_BYTES and is_json:
        return decoding.decode(body, content_type, headers, target)

    def work() -> Changes:
        with parsing.uncollected():
            return decoding.decode(body, content_type, headers, target)

    async with _DECODING:
        if is_json and len(body) > parsing.INLINE_BYTES:
            lease = scopes.lease(request)
            most = parsing.most_values(lease)
            count = await asyncio.to_thread(parsing.check, body, most, None)
            await parsing.unfold(lease, body, count)
        return await asyncio.to_thread(work)


def _target(accelerations: Accelerations, name: str) -> tuple[TableName, ChangeTarget]:
    try:
        return dataset_names.find(name, accelerations.target)
    except _NOT_HERE as exc:
        # For a producer, a dataset that accepts no changes does not exist.
        raise RefusedRequestError(404, exc.message) from exc


def _request_id(header: str | None) -> str | None:
    if header is not None and not _REQUEST_ID.fullmatch(header):
        raise RefusedRequestError(
            400, "the Idempotency-Key must be 1 to 255 visible ASCII characters, such as a UUID"
        )
    return header
