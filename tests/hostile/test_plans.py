"""Hostile Substrait plans against `caraway run`."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyarrow import flight
from substrait.plan_pb2 import Plan

from caraway_gateway.flight.sql import messages
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto
from tests.hostile import serving
from tests.hostile.serving import WITHIN_S, Served
from tests.kit.client_plans import Handwritten, JsonObject, field, literal, plan, project, read

pytestmark = pytest.mark.timeout(600)
T_READ = read("t", id="i64", one="i64", name="string")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving.standalone(tmp_path_factory.mktemp("hostile-plans")) as made:
        yield made


def tagged(tag: bytes, inner: bytes) -> bytes:
    """Put bytes into a field of a message."""
    length, size = b"", len(inner)
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return tag + length + bytes([size]) + inner


def deep() -> bytes:
    """Filters of filters."""
    inner = b""
    for _ in range(10_000):
        inner = tagged(b"\x12", inner)
    return tagged(b"\x1a", tagged(b"\x12", tagged(b"\x0a", inner)))


def many_messages() -> bytes:
    decoded = Plan.FromString(plan(T_READ, "id", "one", "name"))
    decoded.extensions.add().extension_function.name = "x"
    return bytes(decoded.SerializeToString()) + b"\x12\x00" * 1_000_000


def repeated() -> bytes:
    """A text of 2 GB, which the engine would make while it plans."""
    made = Handwritten(urn=None)
    call = made.call("repeat", literal(string="x"), literal(i64=2_000_000_000))
    counted = made.call("character_length", call)
    return made.plan(project(T_READ, counted, emit=[3]), "n")


def files() -> bytes:
    items: list[JsonObject] = [{"uriFile": "file:///etc/passwd", "text": {}}]
    schema = {"names": ["a"], "struct": {"types": [{"string": {}}]}}
    return plan({"read": {"baseSchema": schema, "localFiles": {"items": items}}}, "a")


def out_of_range() -> bytes:
    return plan(project(T_READ, field(2**31 - 1), emit=[2**31 - 1]), "a")


HOSTILE = {
    "garbage": b"\xff" * 100_000,
    "10 MB": b"\x1a" * (10 << 20),
    "depth": deep(),
    "messages": many_messages(),
    "a long text": repeated(),
    "files": files(),
    "references": out_of_range(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_plan_harms_only_itself(served: Served, name: str) -> None:
    running = served.up()
    message = proto.CommandStatementSubstraitPlan(plan=proto.SubstraitPlan(plan=HOSTILE[name]))
    ticket = flight.Ticket(messages.packed(message))
    options = flight.FlightCallOptions(timeout=WITHIN_S)
    with flight.connect(f"grpc+tcp://{running.addresses['flight']}") as client:
        with pytest.raises((flight.FlightError, pa.ArrowException)) as refused:
            client.do_get(ticket, options).read_all()
        assert serving.Answer(500, str(refused.value)).problems() == []
        good = flight.Ticket(
            messages.packed(
                proto.CommandStatementSubstraitPlan(
                    plan=proto.SubstraitPlan(plan=plan(T_READ, "id", "one", "name"))
                )
            )
        )
        assert client.do_get(good, options).read_all().num_rows == serving.ROWS
    assert running.process.poll() is None
