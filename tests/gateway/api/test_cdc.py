"""The route of change events, with a fake in place of `Ingest`."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from caraway_acceleration.changes.ingesting import (
    ChangesRefusedError,
    QueueFullError,
    SourcePositions,
    StreamStoppedError,
)
from caraway_acceleration.missing import NoDatasetError, NotAcceleratedError
from caraway_acceleration.versions import requests
from caraway_core.changes import Changes
from caraway_core.errors import (
    CarawayError,
    ExecutionError,
    InvalidQueryError,
    OverloadedError,
    QueryTimeoutError,
    ShuttingDownError,
    StateAwayError,
    outcomes,
)
from caraway_core.ids import TableName
from caraway_gateway.api import cdc
from caraway_plugins.changes.target import ChangeTarget, RegistryAwayError
from tests.kit.runtime import Running, running
from tests.kit.shared_runtime import Relay, entered

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
EVENT: dict[str, Any] = {"op": "c", "before": None, "after": {"id": 1, "name": "a"}}
BODY = orjson.dumps(EVENT)
ENVELOPE = orjson.dumps(
    {"type": "record", "name": "E", "fields": [{"name": "op", "type": "string"}]}
).decode()


class FakeIngest:
    """Accepts changes of `orders`, records them, and fails on demand."""

    def __init__(self) -> None:
        self.applied: list[tuple[str, Changes, str | None, float]] = []
        self.failure: CarawayError | None = None
        self.refusals: dict[str, CarawayError] = {}
        self.names = {"orders", '"Odd Name"', "public.lines"}
        self.waits: asyncio.Event | None = None

    def target(self, name: TableName) -> ChangeTarget:
        if name in self.refusals:
            raise self.refusals[name]
        if name not in self.names:
            raise NoDatasetError(f"no dataset '{name}'")
        return ChangeTarget(SCHEMA, ("id",), avro_schema=ENVELOPE)

    async def apply(
        self,
        name: TableName,
        changes: Changes,
        request_id: str | None,
        deadline_s: float,
        *,
        source: SourcePositions | None = None,
    ) -> int:
        assert source is None
        if self.waits is not None:
            await self.waits.wait()
        if self.failure is not None:
            raise self.failure
        self.applied.append((name, changes, request_id, deadline_s))
        return changes.received

    async def position(self, name: TableName) -> str | None:
        raise AssertionError(f"nobody here asks for the position of {name}")


async def post(runtime: Running, body: bytes = BODY, name: str = "orders", **headers: str) -> Any:
    sent = {"content-type": "application/json"}
    sent |= {key.replace("_", "-"): value for key, value in headers.items()}
    return await runtime.api.post(f"/v1/datasets/{name}/cdc", content=body, headers=sent)


def refused(answer: Any, status: int, says: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.json().keys() == {"message"}
    assert says in answer.json()["message"]


@asynccontextmanager
async def serving(
    folder: Path, ingest: FakeIngest | Relay[FakeIngest], manifest: str = "", **bounds: Any
) -> AsyncIterator[Running]:
    async with running(
        folder, manifest, altered=lambda made: replace(made, **{"accelerations": ingest, **bounds})
    ) as runtime:
        yield runtime


@dataclass(frozen=True, slots=True)
class Shared:
    """A runtime that the tests share, each with a fake of its own."""

    runtime: Running
    relay: Relay[FakeIngest]

    def over(self, ingest: FakeIngest) -> Running:
        self.relay.current = ingest
        return self.runtime


@pytest.fixture(scope="module")
def shared(
    loop_of_module: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shared]:
    relay, folder = Relay(FakeIngest()), tmp_path_factory.mktemp("cdc")
    with entered(loop_of_module, lambda: serving(folder, relay)) as runtime:
        yield Shared(runtime, relay)


async def test_events_are_applied_before_the_answer_comes(shared: Shared) -> None:
    fake = FakeIngest()
    runtime = shared.over(fake)
    answer = await post(runtime, orjson.dumps([EVENT, None, EVENT]))

    assert (answer.status_code, answer.json()) == (200, {"applied": 2, "dataset": "orders"})
    (name, changes, request_id, deadline_s) = fake.applied[0]
    assert (name, changes.rows.num_rows, request_id) == ("orders", 2, None)
    assert 0 < deadline_s <= cdc.BUDGET_S


@pytest.mark.parametrize(
    ("name", "table"),
    [("orders", "orders"), ("ORDERS", "orders"), ("public.orders", "orders"),
     ("lines", "public.lines"), ("public.lines", "public.lines")],
)  # fmt: skip
async def test_name_is_bare_or_qualified_and_returned_unchanged(
    shared: Shared, name: str, table: str
) -> None:
    fake = FakeIngest()
    runtime = shared.over(fake)
    answer = await post(runtime, name=name)

    assert answer.json() == {"applied": 1, "dataset": name}
    assert fake.applied[0][0] == table


async def test_each_form_is_read(shared: Shared) -> None:
    fake = FakeIngest()
    runtime = shared.over(fake)
    for kind in ("application/json", "application/cdc+json", "application/vnd.debezium+json",
                 "application/x-ndjson", "Application/JSON; charset=utf-8"):  # fmt: skip
        answer = await post(runtime, BODY + b"\n" + BODY, content_type=kind)
        assert answer.json()["applied"] == 2, kind
    for kind in ("application/avro", "application/cdc+avro", "application/vnd.debezium+avro"):
        answer = await post(runtime, b"\x02t\x02t", content_type=kind)
        assert answer.json()["applied"] == 2, kind
    own = orjson.dumps({"type": "record", "name": "E", "fields": [
        {"name": "ts", "type": "long"}, {"name": "op", "type": "string"}]})  # fmt: skip
    answer = await post(
        runtime, b"\0\x02t", content_type="application/avro", x_avro_schema=own.decode()
    )
    assert answer.json()["applied"] == 1


async def test_large_bodies_are_read_as_well(shared: Shared) -> None:
    fake = FakeIngest()
    runtime = shared.over(fake)
    answer = await post(runtime, orjson.dumps([EVENT] * 1000))

    assert answer.json()["applied"] == 1000


async def test_idempotency_key_is_passed_on(shared: Shared) -> None:
    fake = FakeIngest()
    runtime = shared.over(fake)
    await post(runtime, idempotency_key="batch-7")
    await post(runtime, idempotency_key="batch-7")
    await post(runtime, BODY + b" ", idempotency_key="batch-7")
    await post(runtime, idempotency_key="batch-8")

    same, again, other_body, other_key = (request or "" for _, _, request, _ in fake.applied)
    assert same and same == again
    assert requests.id_of(other_body) == requests.id_of(same) and other_body != same
    assert requests.id_of(other_key) != requests.id_of(same)
    refused(await post(runtime, idempotency_key="a b"), 400, "Idempotency-Key")
    refused(await post(runtime, idempotency_key="x" * 256), 400, "Idempotency-Key")


async def test_events_without_effect_are_not_applied(shared: Shared) -> None:
    fake = FakeIngest()
    runtime = shared.over(fake)
    assert (await post(runtime, b"[null]")).json() == {"applied": 0, "dataset": "orders"}
    assert not fake.applied


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (QueueFullError("it took too long"), 504),
        (QueryTimeoutError("it took too long"), 504),
        (StreamStoppedError("it is loaded again"), 503),
        (ShuttingDownError("it stops"), 503),
        (StateAwayError("the state store is away"), 503),
        (RegistryAwayError("the registry is away"), 503),
        (OverloadedError("too much", 2), 429),
        (ChangesRefusedError("not these"), 400),
        (InvalidQueryError("a value does not fit"), 400),
        (ExecutionError("an executor failed"), 500),
        (CarawayError("unheard of"), 500),
    ],
)
async def test_failure_to_apply_has_its_status(
    shared: Shared, failure: CarawayError, status: int
) -> None:
    fake = FakeIngest()
    fake.failure = failure
    runtime = shared.over(fake)
    refused(await post(runtime), status, outcomes.words(failure))


@pytest.mark.parametrize(
    "refusal",
    [
        NotAcceleratedError("dataset 'x' is not accelerated"),
        ChangesRefusedError("dataset 'x' does not take changes"),
    ],
)
@pytest.mark.parametrize("name", ["x", "public.x"])
async def test_dataset_that_takes_no_changes_is_404(
    shared: Shared, refusal: CarawayError, name: str
) -> None:
    fake = FakeIngest()
    fake.refusals["x"] = refusal
    runtime = shared.over(fake)
    refused(await post(runtime, name=name), 404, refusal.message)


@pytest.mark.parametrize("name", ["unknown", "a.b.c.d", "runtime.x", "%22"])
async def test_unknown_name_is_404(shared: Shared, name: str) -> None:
    runtime = shared.over(FakeIngest())
    refused(await post(runtime, name=name), 404, "")


@pytest.mark.parametrize(
    ("body", "headers", "says"),
    [
        (
            BODY,
            {"content_type": "text/plain"},
            "'text/plain' is not supported; known: application/json",
        ),
        (BODY, {"content_type": ""}, "the Content-Type is missing"),
        (BODY, {"content_encoding": "gzip"}, "Content-Encoding"),
        (b'{"op":"c","after":{"id":1,"id":2}}', {}, 'the key "id" is there twice'),
        (b'{"op":"c","after":{"id":1e400}}', {}, "out of range"),
        (b"", {}, "empty"),
        (b"{", {}, "not JSON"),
        (b'{"id": 1}', {}, "event 1: it has no 'op'"),
        (orjson.dumps([EVENT, {**EVENT, "after": {"id": "x"}}]), {}, "event 2: column 'id'"),
        (b"\x04tt", {"content_type": "application/avro"}, "event 1: its 'op' is 'tt'"),
        (b"\x02", {"content_type": "application/avro"}, "not a record of the Avro schema"),
    ],
)
async def test_what_cannot_be_read_is_400_and_nothing_is_applied(
    shared: Shared, body: bytes, headers: dict[str, str], says: str
) -> None:
    fake = FakeIngest()
    runtime = shared.over(fake)
    refused(await post(runtime, body, **headers), 400, says)
    assert not fake.applied


async def test_compressed_events_are_applied(shared: Shared) -> None:
    fake = FakeIngest()
    runtime = shared.over(fake)
    answer = await post(runtime, gzip.compress(BODY), content_encoding="gzip")
    assert answer.json() == {"applied": 1, "dataset": "orders"}
    refused(await post(runtime, content_encoding="br"), 415, "'br' are not supported")


async def test_key_that_may_only_read_is_403(tmp_path: Path) -> None:
    fake = FakeIngest()
    manifest = "runtime: {auth: {api-key: {keys: ['look:ro', 'change:rw']}}}\n"
    async with serving(tmp_path, fake, manifest) as runtime:
        refused(await post(runtime, x_api_key="look"), 403, ":rw")
        assert (await post(runtime, x_api_key="change")).status_code == 200
        assert len(fake.applied) == 1


async def test_body_that_is_too_large_is_413(tmp_path: Path) -> None:
    async with serving(tmp_path, FakeIngest(), max_body_bytes=10) as runtime:

        async def pieces() -> AsyncIterator[bytes]:
            yield BODY

        undeclared = await runtime.api.post(
            "/v1/datasets/orders/cdc",
            content=pieces(),
            headers={"content-type": "application/json"},
        )
        refused(undeclared, 413, "larger than 10 bytes")


async def test_apply_that_does_not_return_is_504(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cdc, "BUDGET_S", 0.0)
    monkeypatch.setattr(cdc, "_GRACE_S", 0.0)
    fake = FakeIngest()
    fake.waits = asyncio.Event()
    runtime = shared.over(fake)
    refused(await post(runtime), 504, "send them again")
