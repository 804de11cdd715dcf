"""The routes of `/v1/queries`."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Annotated

import pyarrow as pa
from fastapi import APIRouter, Path, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError, InvalidQueryError
from caraway_core.ids import JobId
from caraway_core.protocols.results import ChunkInfo
from caraway_gateway.api import app_state
from caraway_gateway.api.queries import answers, documentation, documents, errors, submissions
from caraway_gateway.api.queries.answers import ChunkRows
from caraway_gateway.api.queries.documents import ChunkJson
from caraway_scheduler.jobs.model import Job
from caraway_scheduler.jobs.service import MOST_WAIT_S, JobService
from caraway_serving import bodies, codings, formats, negotiation, parsing, scopes, streaming
from caraway_serving.errors import RefusedRequestError
from caraway_serving.formats import Encoder
from caraway_serving.negotiation import STORED_TYPES
from caraway_serving.routes import DirectRoute
from caraway_serving.streaming import AnswerForm, BodySender

logger = logging.getLogger(__name__)


class _StoredResponse(Response):
    """A response that sends rows itself, unlike its base. `head` is the encoder's beginning."""

    def __init__(
        self, job_id: JobId, reading: ChunkRows, encoder: Encoder, head: bytes, form: AnswerForm
    ) -> None:
        self.status_code = 200
        self.background = None
        self._job_id = job_id
        self._reading = reading
        self._encoder = encoder
        self._head = head
        self._form = form

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = tasks.begin(streaming.disconnected(receive))
        rows = _unless_gone(self._reading, gone)
        try:
            await BodySender(self._form, send).rows(self._encoder, self._head, rows, lambda: 0)
        except ClientDisconnect:
            pass
        except CarawayError as exc:
            logger.warning("answer aborted", extra={"job_id": self._job_id, "reason": exc.message})
        finally:
            gone.cancel()
            await self._reading.aclose()


async def _unless_gone(
    reading: ChunkRows, gone: asyncio.Future[None]
) -> AsyncIterator[pa.RecordBatch]:
    async for batch in reading:
        if gone.done():
            raise ClientDisconnect
        yield batch


router = APIRouter(tags=["Asynchronous queries"], route_class=DirectRoute)
_MOST_LISTED = 10_000
_LISTED = 100
_TOO_EARLY = 425
_CONFLICT = 409
_JSON = "application/json"

QueryIdParameter = Annotated[str, Path(description="The `query_id` from the submission.")]


@router.post("/v1/queries", **documentation.SUBMIT)
@errors.worded
async def submit(request: Request) -> Response:
    """Submit a query and return its id at once; it runs whether or not a client waits."""
    service = _service(request)
    key = submissions.idempotency_key(request.headers.get("idempotency-key"))
    body = await bodies.read(request, app_state.services(request).max_body_bytes)
    parse = partial(submissions.parse, content_type=request.headers.get("content-type"))
    job_request = await parsing.parsed(request, body, parse, parsing.MOST_SQL_VALUES)
    job = await service.submit(scopes.principal(request), job_request, scopes.span(request), key)
    return JSONResponse(documents.submitted(job), 202)


@router.get("/v1/queries", **documentation.LIST)
@errors.worded
async def list_queries(
    request: Request,
    status: Annotated[
        str, Query(description="Filter by status: `pending`, `running`, `succeeded`, `failed`, ...")
    ] = "",
    limit: Annotated[
        int, Query(ge=0, le=_MOST_LISTED, description="The maximum number of queries.")
    ] = _LISTED,
) -> Response:
    """List the caller's queries, newest first; expired ones only if the filter selects them."""
    job_status = documents.FILTERS.get(status.strip().lower())
    principal = scopes.principal(request)
    jobs = await _service(request).list(principal.id, job_status, limit)
    return JSONResponse(documents.listed(jobs))


@router.get("/v1/queries/{query_id}", **documentation.DESCRIBE)
@errors.worded
async def describe(request: Request, query_id: QueryIdParameter) -> Response:
    """Describe a query, with the first chunk of its rows once it has succeeded."""
    service = _service(request)
    return await _described(request, service, await _find(request, service, query_id))


@router.get("/v1/queries/{query_id}/status", **documentation.STATUS)
@errors.worded
async def status(
    request: Request,
    query_id: QueryIdParameter,
    wait: Annotated[
        float,
        Query(ge=0, le=MOST_WAIT_S, allow_inf_nan=False,
              description="Answer once the query has ended, or after this many seconds."),
    ] = 0.0,
) -> Response:  # fmt: skip
    """Return the status and progress of a query."""
    service = _service(request)
    if wait:
        waiting = service.wait(scopes.principal(request).id, submissions.job_id(query_id), wait)
        job = await streaming.unless_gone(request, waiting)
    else:
        job = await _find(request, service, query_id)
    progress = await service.progress(job)
    return JSONResponse(documents.status(job, progress))


@router.get("/v1/queries/{query_id}/results", **documentation.RESULTS)
@errors.worded
async def results(
    request: Request,
    query_id: QueryIdParameter,
    partition: Annotated[
        int | None, Query(description="The index of the chunk; for JSON, the default is 0.")
    ] = None,
    format: Annotated[str, Query(description="`json`; select other formats with `Accept`.")] = (
        "json"
    ),
) -> Response:
    """Send one chunk as JSON, or the whole answer in another format."""
    _refuse_format(format)
    return await _results(request, query_id, partition, _TOO_EARLY)


@router.get("/v1/queries/{query_id}/results/chunks/{index}", **documentation.CHUNK)
@errors.worded
async def chunk(
    request: Request,
    query_id: QueryIdParameter,
    index: Annotated[int, Path(description="The index, starting at 0.")],
    format: Annotated[str, Query(description="`json`; select other formats with `Accept`.")] = (
        "json"
    ),
) -> Response:
    """Send one chunk in the format that `Accept` selects."""
    _refuse_format(format)
    try:
        return await _results(request, query_id, index, _CONFLICT)
    except errors.NoResultsError as exc:
        raise RefusedRequestError(exc.status, exc.message) from exc


@router.post("/v1/queries/{query_id}/cancel", **documentation.CANCEL)
@errors.worded
async def cancel(request: Request, query_id: QueryIdParameter) -> Response:
    """Cancel a query unless it has ended, and describe it."""
    service = _service(request)
    principal = scopes.principal(request)
    if not principal.may_write:
        raise RefusedRequestError(403, "cancelling a query needs a key that ends in :rw")
    return await _described(
        request, service, await service.cancel(principal.id, submissions.job_id(query_id))
    )


async def _described(request: Request, service: JobService, job: Job) -> Response:
    job, manifest = await answers.described(service, job)
    document = documents.described(job, manifest)
    if manifest is None:
        return JSONResponse(document)
    encoder = ChunkJson(documents.chunk(job, manifest, 0), within=document)
    return await _stored(
        request, service, job, manifest.schema, manifest.chunks[:1], encoder, _JSON
    )


async def _results(request: Request, query_id: str, index: int | None, unfinished: int) -> Response:
    choice = negotiation.representation(request.headers.get("accept"), STORED_TYPES)
    service = _service(request)
    job = await _find(request, service, query_id)
    manifest = await answers.manifest(service, job, unfinished)
    if choice.format == "json":
        index = index or 0
    chunks = manifest.chunks if index is None else answers.chunk(manifest, job, index)
    encoder: Encoder
    if choice.format == "json":
        encoder = ChunkJson(documents.chunk(job, manifest, index or 0))
    else:
        encoder = formats.make(choice.format)
    return await _stored(
        request, service, job, manifest.schema, chunks, encoder, choice.content_type
    )


async def _stored(
    request: Request,
    service: JobService,
    job: Job,
    schema: pa.Schema,
    chunks: Sequence[ChunkInfo],
    encoder: Encoder,
    content_type: str,
) -> Response:
    try:
        head = encoder.encode_start(schema)
    except InvalidQueryError as exc:
        # The answer exists, but cannot be encoded in this format.
        raise RefusedRequestError(406, exc.message) from exc
    reading = await answers.read(service, job, schema, chunks)
    return _StoredResponse(job.job_id, reading, encoder, head, _form(request, content_type))


def _form(request: Request, content_type: str) -> AnswerForm:
    services = app_state.services(request)
    counts = services.tallies.query_returned_bytes

    def count_bytes(sent: int) -> None:
        counts[("http",)] += sent

    coding = codings.of_request(request.headers)
    vary = "Accept, Accept-Encoding"
    if services.keyring is not None:
        vary += ", Authorization, X-API-Key"
    return AnswerForm(content_type, coding, count_bytes, {"vary": vary})


def _service(request: Request) -> JobService:
    return app_state.services(request).jobs.service


async def _find(request: Request, service: JobService, query_id: str) -> Job:
    return await service.find(scopes.principal(request).id, submissions.job_id(query_id))


def _refuse_format(format_: str) -> None:
    if format_.lower() != "json":
        raise RefusedRequestError(
            400,
            f"format '{format_[:100]}' is not supported in the query string; select other formats "
            f"than JSON with Accept: {', '.join(STORED_TYPES)}",
        )
