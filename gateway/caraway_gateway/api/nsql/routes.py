"""The routes of `/v1/nsql`."""

import time
from collections.abc import AsyncGenerator
from importlib import metadata
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, PlainTextResponse, Response

from caraway_ai.text_to_sql import documents
from caraway_ai.text_to_sql.described import TableSampling
from caraway_ai.text_to_sql.documents import SqlDialect
from caraway_assist.nsql.service import Asker
from caraway_core.errors import CarawayError, ModelError
from caraway_gateway.api import app_state
from caraway_gateway.api.chat import errors as chat_errors
from caraway_gateway.api.chat import streams
from caraway_gateway.api.nsql import documentation, requests, responses
from caraway_gateway.api.nsql.requests import AnswerChoice, AskedQuestion
from caraway_gateway.api.sql.responses import AnswerResponse
from caraway_gateway.services import Services
from caraway_serving import bodies, codings, errors, negotiation, parsing, scopes, streaming
from caraway_serving.errors import RefusedRequestError

router = APIRouter(tags=["Natural-language SQL"])
_KNOWN = (CarawayError, RefusedRequestError)
_MOST_SAMPLES = 100
_CONTEXT_TYPES = ("text/markdown", "text/plain", "application/json")


@router.post("/v1/nsql", **documentation.ASK)
async def ask(request: Request) -> Response:
    """Answer a question: a model writes SQL, which may only read, and its rows are the answer."""
    started = time.perf_counter()
    services = app_state.services(request)
    try:
        body = await bodies.read(request, services.max_body_bytes)
        asked = await parsing.parsed(request, body, requests.parse, parsing.MOST_SQL_VALUES)
        accept = request.headers.get("accept")
        form = requests.answer_form(accept, is_streamed=asked.is_streamed)
        if asked.is_streamed:
            pump = await streams.opened(request, _event(services, asked, form, request, started))
            return streams.EventStream(pump, responses.event, lambda _error: b"", b"")
        if form.is_sql_only:
            writing = services.nsql.write(asked.question, _asker(request))
            sql = await streaming.unless_gone(request, writing)
            return Response(sql, media_type="application/sql; charset=utf-8")
        running = services.nsql.run_question(asked.question, _asker(request))
        written = await streaming.unless_gone(request, running)
    except _KNOWN as exc:
        return _failed(exc)
    except ClientDisconnect:
        return errors.CLIENT_GONE
    coding = codings.of_request(request.headers)
    headers = {"x-query-id": written.outcome.query_id, "vary": "Accept, Accept-Encoding"}
    encoder = responses.encoder(form.choice.format, written.sql)
    counts = services.tallies.query_returned_bytes

    def count_bytes(sent: int) -> None:
        counts["http",] += sent

    return AnswerResponse(
        written.outcome, form.choice, coding, headers, count_bytes, started, encoder
    )


@router.get("/v1/nsql/context", **documentation.CONTEXT)
async def context(
    request: Request,
    model: Annotated[str | None, Query(description="A model of the manifest.")] = None,
    include_sampling: Annotated[bool, Query(description="Add values of columns.")] = False,
    sample_data_enabled: Annotated[
        bool, Query(description="Another name of `include_sampling`.")
    ] = False,
    sampling_limit: Annotated[
        int, Query(ge=1, le=_MOST_SAMPLES, description="The most values of a column.")
    ] = 3,
    include_examples: Annotated[
        bool | None, Query(description="Add rows; as `include_sampling` without it.")
    ] = None,
    examples_limit: Annotated[
        int, Query(ge=1, le=_MOST_SAMPLES, description="The most rows of a table.")
    ] = 3,
    datasets: Annotated[
        list[str] | None, Query(description="Only these tables; may be repeated.")
    ] = None,
) -> Response:
    """Return the description of the data for a model: rules, schemas, keys, functions, samples."""
    services = app_state.services(request)
    media_type = _context_type(request.headers.get("accept"))
    if media_type is None:
        known = ", ".join(_CONTEXT_TYPES)
        return PlainTextResponse(f"none of the accepted types is supported; Accept {known}", 406)
    has_values = include_sampling or sample_data_enabled
    has_rows = has_values if include_examples is None else include_examples
    sampling = TableSampling(sampling_limit if has_values else 0, examples_limit if has_rows else 0)
    try:
        describing = services.nsql.described(datasets, model, sampling, _asker(request))
        tables = await streaming.unless_gone(request, describing)
    except _KNOWN as exc:
        return errors.as_text(exc)
    except ClientDisconnect:
        return errors.CLIENT_GONE
    dialect = SqlDialect(metadata.version("datafusion"))
    functions = services.nsql.functions({each.table.name for each in tables})
    if media_type == "application/json":
        return JSONResponse(documents.as_json(tables, dialect, functions))
    page = documents.as_markdown(tables, dialect, functions)
    return Response(page, media_type=f"{media_type}; charset=utf-8")


async def _event(
    services: Services,
    asked: AskedQuestion,
    form: AnswerChoice,
    request: Request,
    started: float,
) -> AsyncGenerator[bytes, None]:
    """Yield the one body of a streamed answer."""
    if form.is_sql_only:
        yield (await services.nsql.write(asked.question, _asker(request))).encode()
        return
    written = await services.nsql.run_question(asked.question, _asker(request))
    format_ = form.choice.format
    encoder = responses.encoder("versioned" if format_ == "json" else format_, written.sql)
    elapsed_ms = int((time.perf_counter() - started) * 1000)
    yield await responses.whole(written.outcome, encoder, elapsed_ms)


def _failed(exc: errors.Failure) -> Response:
    found = chat_errors.status(exc)
    # It is the provider that refuses its key; 401 would ask the client for another one.
    status = 500 if found == 401 and isinstance(exc, ModelError) else found
    return PlainTextResponse(errors.words(exc), status, errors.headers(exc))


def _asker(request: Request) -> Asker:
    agent = request.headers.get("user-agent", "")
    return Asker(scopes.principal(request), scopes.span(request), agent)


def _context_type(accept: str | None) -> str | None:
    """Return the media type to answer with, or None where none is accepted."""
    known: dict[str, Any] = dict.fromkeys(_CONTEXT_TYPES, "text")
    if not accept or not accept.strip():
        return _CONTEXT_TYPES[0]
    try:
        return negotiation.representation(accept, known).media_type
    except RefusedRequestError:
        return None
