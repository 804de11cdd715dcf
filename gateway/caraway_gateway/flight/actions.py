"""Asynchronous queries as actions: a JSON body in, JSON or the rows of one chunk out."""

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar, cast

from pyarrow import flight

from caraway_core.errors import InvalidQueryError, QueryForbiddenError
from caraway_core.ids import JobId
from caraway_core.json_texts import strict_json
from caraway_core.sqltext import writing
from caraway_gateway.api.queries import submissions
from caraway_gateway.flight.callers import Caller
from caraway_scheduler.jobs.model import Job
from caraway_scheduler.jobs.service import JobService
from caraway_scheduler.queries.storing import StoredAnswer
from caraway_serving import formats, parsing
from caraway_serving.errors import RefusedRequestError
from caraway_serving.flight import statuses

DESCRIPTIONS: Mapping[str, str] = {
    "SubmitAsyncQuery": (
        "Run a query whether or not anybody waits: {sql, parameters, timeout_seconds, "
        "maximum_size} -> {query_id, status}"
    ),
    "GetAsyncQueryStatus": "{query_id} -> {query_id, status, error, result}",
    "GetAsyncQueryResult": "{query_id, chunk_index = 0} -> the chunk as an Arrow IPC stream",
    "CancelAsyncQuery": "{query_id} -> {query_id, cancelled, status}",
}
Body = Mapping[str, object]
_Parsed = TypeVar("_Parsed")


def known() -> list[flight.ActionType]:
    """List what `act` takes."""
    return [flight.ActionType(name, says) for name, says in DESCRIPTIONS.items()]


async def act(service: JobService, caller: Caller, name: str, body: bytes) -> bytes:
    """Do one of the known actions; runs on the event loop.

    Raises:
        CarawayError, StatusError: whatever is wrong with it.
    """
    if name == "SubmitAsyncQuery":
        return await _submit(service, caller, body)
    return await _ACTIONS[name](service, caller, await _parsed(body, _read))


async def _submit(service: JobService, caller: Caller, body: bytes) -> bytes:
    request = await _parsed(body, partial(submissions.parse, content_type=None))
    if not caller.principal.may_write and writing.begins_with_write(request.sql):
        raise QueryForbiddenError("this key may only read; writing needs a key that ends in :rw")
    job = await service.submit(caller.principal, request, caller.span)
    return _json({"query_id": job.job_id, "status": job.status})


async def _status(service: JobService, caller: Caller, body: Body) -> bytes:
    job = await _find(service, caller, body)
    document: dict[str, object] = {"query_id": job.job_id, "status": job.status}
    if job.error is not None:
        document["error"] = {"error_code": job.error.code, "message": job.error.message}
    if job.status == "SUCCEEDED":
        rows, chunks = await _totals(service, job)
        document["result"] = {"total_row_count": rows, "total_chunk_count": chunks}
    return _json(document)


async def _result(service: JobService, caller: Caller, body: Body) -> bytes:
    job = await _find(service, caller, body)
    answer = await manifest(service, job)
    index = body.get("chunk_index") or 0
    if not isinstance(index, int) or isinstance(index, bool):
        raise InvalidQueryError('the field "chunk_index" must be an integer, 0 or more')
    if not 0 <= index < max(1, len(answer.chunks)):
        raise statuses.NotFound(
            f"query '{job.job_id}' has no chunk {index}; it has {len(answer.chunks)} in all"
        )
    encoder = formats.make("arrow")
    parts = [encoder.encode_start(answer.schema)]
    async for batch in service.read(job, answer.chunks[index : index + 1]):
        parts.append(encoder.encode(batch))
    return b"".join((*parts, encoder.end(0)))


async def _cancel(service: JobService, caller: Caller, body: Body) -> bytes:
    if not caller.principal.may_write:
        raise QueryForbiddenError("cancelling a query needs a key that ends in :rw")
    job = await service.cancel(caller.principal.id, _job_id(body))
    cancelled = job.status == "CANCELLED"
    return _json({"query_id": job.job_id, "cancelled": cancelled, "status": job.status})


_Action = Callable[[JobService, Caller, Body], Awaitable[bytes]]
_ACTIONS: Mapping[str, _Action] = {
    "GetAsyncQueryStatus": _status,
    "GetAsyncQueryResult": _result,
    "CancelAsyncQuery": _cancel,
}


async def manifest(service: JobService, job: Job) -> StoredAnswer:
    """Return the stored answer of a finished query.

    Raises:
        CarawayError, StatusError: it is not finished, failed or expired.
    """
    match job.status:
        case "PENDING" | "RUNNING":
            raise statuses.NotFinished(
                f"query '{job.job_id}' is {job.status}; ask GetAsyncQueryStatus until it has "
                "SUCCEEDED"
            )
        case "FAILED":
            raise statuses.Internal(statuses.bounded(job.error.message if job.error else "failed"))
        case "CANCELLED":
            raise statuses.CancelledStatus(f"query '{job.job_id}' was cancelled")
        case "CLOSED":
            raise statuses.NotFound(f"the results of query '{job.job_id}' have expired")
    return await service.manifest(job)


async def _totals(service: JobService, job: Job) -> tuple[int, int]:
    if job.totals is not None:
        return job.totals.rows, job.totals.chunks
    chunks = (await service.manifest(job)).chunks
    return sum(each.row_count for each in chunks), len(chunks)


async def _find(service: JobService, caller: Caller, body: Body) -> Job:
    return await service.find(caller.principal.id, _job_id(body))


def _job_id(body: Body) -> JobId:
    query_id = body.get("query_id")
    if not isinstance(query_id, str):
        raise InvalidQueryError('the field "query_id" must be a string')
    return submissions.job_id(query_id)


async def _parsed(body: bytes, parse: Callable[[bytes], _Parsed]) -> _Parsed:
    try:
        return await parsing.parsed_within(None, body, parse, parsing.MOST_SQL_VALUES)
    except RefusedRequestError as exc:
        raise InvalidQueryError(exc.message) from exc


def _read(body: bytes) -> Body:
    try:
        document = strict_json.parse(body)
    except ValueError as exc:
        raise InvalidQueryError(f"the body of the action is not JSON: {exc}") from exc
    if not isinstance(document, dict):
        raise InvalidQueryError("the body of the action must be a JSON object")
    return cast(Body, document)


def _json(document: Body) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()
