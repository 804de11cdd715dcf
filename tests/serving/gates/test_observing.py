"""Every request is counted once, under its route, and has a trace id."""

import asyncio
from types import SimpleNamespace

import pytest
from starlette.types import Receive, Scope, Send

from caraway_core.process.logs import trace_id
from caraway_serving.gates.observing import ObservationGate
from caraway_serving.scopes import SPAN
from caraway_serving.tallies import ApiTallies
from tests.serving.gates.asking import Route, ask, scope

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def routed(path: str) -> "Route":
    """Return a route that the router has found by this pattern."""
    route = SimpleNamespace(path=path, methods={"GET", "POST"})
    return Route(within=lambda asked: asked.update(route=route))


async def test_request_is_counted_under_the_pattern_of_its_route() -> None:
    tallies = ApiTallies()
    gate = ObservationGate(routed("/v1/queries/{query_id}"), tallies)
    await ask(gate, scope("/v1/queries/1", "GET"))
    await ask(gate, scope("/v1/queries/2", "GET"))
    path = "/v1/queries/{query_id}"
    assert tallies.http_requests == {("GET", path, "200"): 2}
    assert sum(tallies.http_durations.buckets["GET", path, "2xx"]) == 2


async def test_methods_that_a_route_does_not_have_make_no_labels_of_their_own() -> None:
    tallies = ApiTallies()
    gate = ObservationGate(routed("/v1/sql"), tallies)
    for method in ("PUT", "PROPFIND", "LINK"):
        await ask(gate, scope("/v1/sql", method))
    assert tallies.http_requests == {("other", "/v1/sql", "200"): 3}


async def test_unknown_paths_and_methods_of_clients_make_no_labels_of_their_own() -> None:
    tallies = ApiTallies()
    gate = ObservationGate(Route(status=404), tallies)
    for number in range(50):
        await ask(gate, scope(f"/guess/{number}", f"METHOD{number}"))
    assert tallies.http_requests == {("other", "other", "404"): 50}


async def test_trace_of_the_caller_goes_on_and_is_answered() -> None:
    route = Route()
    answer = await ask(
        ObservationGate(route, ApiTallies()), scope(traceparent=f"00-{TRACE}-{PARENT}-01")
    )
    assert answer.headers["x-trace-id"] == TRACE
    span = route.seen[0][SPAN]
    assert (span.trace_id, span.parent_span_id) == (TRACE, PARENT)


@pytest.mark.parametrize("header", ["", "nonsense", "\xe9\xff", "00-" + "g" * 32 + "-x-01"])
async def test_hostile_trace_header_is_replaced(header: str) -> None:
    answer = await ask(ObservationGate(Route(), ApiTallies()), scope(traceparent=header))
    assert len(bytes.fromhex(answer.headers["x-trace-id"])) == 16


async def test_log_lines_of_a_request_have_its_trace_and_later_ones_not() -> None:
    during: list[str | None] = []
    before = trace_id.get()
    route = Route(within=lambda _: during.append(trace_id.get()))
    answer = await ask(ObservationGate(route, ApiTallies()), scope())
    assert during == [answer.headers["x-trace-id"]]
    assert trace_id.get() == before


async def test_failure_of_the_route_is_counted_as_500_and_passed_on() -> None:
    tallies, before = ApiTallies(), trace_id.get()
    route = routed("/v1/sql")
    route.raises = RuntimeError("its own")
    with pytest.raises(RuntimeError, match="its own"):
        await ask(ObservationGate(route, tallies), scope())
    assert tallies.http_requests == {("POST", "/v1/sql", "500"): 1}
    assert trace_id.get() == before


async def test_answer_that_began_well_keeps_its_status_when_it_breaks_off() -> None:
    tallies = ApiTallies()

    async def breaks(asked: Scope, _: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200})
        raise OSError("the client is gone")

    with pytest.raises(OSError, match="gone"):
        await ask(ObservationGate(breaks, tallies), scope())
    assert list(tallies.http_requests) == [("other", "other", "200")]


async def test_cancelled_request_is_counted_too() -> None:
    tallies = ApiTallies()

    async def waits(*_: object) -> None:
        await asyncio.Event().wait()

    asking = asyncio.ensure_future(ask(ObservationGate(waits, tallies), scope()))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait((asking,))
    assert asking.cancelled() and sum(tallies.http_requests.values()) == 1


async def test_concurrent_requests_have_traces_of_their_own() -> None:
    gate = ObservationGate(Route(), ApiTallies())
    answers = await asyncio.gather(*(ask(gate, scope()) for _ in range(20)))
    assert len({answer.headers["x-trace-id"] for answer in answers}) == 20


async def test_what_is_not_http_is_not_counted() -> None:
    tallies, route = ApiTallies(), Route()
    await ask(ObservationGate(route, tallies), scope(kind="lifespan"))
    assert len(route.seen) == 1 and not tallies.http_requests
