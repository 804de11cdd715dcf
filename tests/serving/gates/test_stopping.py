"""While the runtime stops, only the health check is answered."""

from dataclasses import dataclass

import pytest

from caraway_serving.failures import ErrorShapes
from caraway_serving.gates.stopping import StopGate
from tests.serving.gates.asking import Route, ask, scope


@dataclass
class Stopping:
    is_stopping: bool = True


SHAPES = ErrorShapes(as_error=("/v1/queries",), as_message=("/v1/datasets/",))


@pytest.mark.parametrize("path", ["/v1/sql", "/v1/ready", "/health/", "/healthy", "/", "/metrics"])
async def test_requests_are_told_to_go_elsewhere(path: str) -> None:
    route = Route()
    answer = await ask(StopGate(route, Stopping(), SHAPES), scope(path))
    assert (answer.status, route.seen) == (503, [])
    assert answer.headers["connection"] == "close"
    assert int(answer.headers["retry-after"]) > 0


async def test_health_is_answered_until_the_end() -> None:
    route = Route()
    assert (await ask(StopGate(route, Stopping(), SHAPES), scope("/health"))).status == 200


async def test_gate_closes_when_the_stop_begins_and_not_before() -> None:
    route, stopping = Route(), Stopping(is_stopping=False)
    gate = StopGate(route, stopping, SHAPES)
    assert (await ask(gate, scope())).status == 200
    stopping.is_stopping = True
    assert (await ask(gate, scope())).status == 503
    assert len(route.seen) == 1


@pytest.mark.parametrize(
    ("path", "begin"),
    [("/v1/queries", b'{"error":'), ("/v1/datasets/a", b'{"message":'), ("/v1/sql", b"Runtime")],
)
async def test_refusal_has_the_shape_of_the_route(path: str, begin: bytes) -> None:
    answer = await ask(StopGate(Route(), Stopping(), SHAPES), scope(path))
    assert answer.body.startswith(begin)


async def test_many_refusals_are_all_the_same() -> None:
    """One value serves all refusals; no answer may change it."""
    gate = StopGate(Route(), Stopping(), SHAPES)
    answers = [await ask(gate, scope(path)) for path in ("/v1/sql", "/v1/queries", "/v1/sql")]
    assert answers[0].messages == answers[2].messages


async def test_what_is_not_http_passes() -> None:
    route = Route()
    await ask(StopGate(route, Stopping(), SHAPES), scope(kind="lifespan"))
    assert len(route.seen) == 1
