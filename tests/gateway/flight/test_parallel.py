"""Answers that clients read at the executors."""

import asyncio
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway_core.ids import ExecutorId, PrincipalId, QueryId
from caraway_core.security.tickets import PartTicket
from caraway_core.settings import Address
from caraway_core.tables import TableSpec
from caraway_serving.tls import ServerTls
from tests.gateway.flight.parallel import (
    TOKEN,
    ParallelCluster,
    parallel,
    read,
    read_all,
    settled,
)
from tests.gateway.flight.serving import KEYS, bearer, client, command, headers, query
from tests.kit.certificates import make_certificate
from tests.kit.tables import parquet

ROWS = 40_000
LOST = r"executor 'e1' is lost.*run the query again"
ALL = "SELECT k, v, s FROM facts"


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, TableSpec]:
    rows = pa.table(
        {
            "k": [n % 700 for n in range(ROWS)],
            "v": list(range(ROWS)),
            "s": [f"text {n}" for n in range(ROWS)],
        }
    )
    return {"facts": parquet(tmp_path / "facts", rows, 8)}


def numbers(rows: pa.Table) -> list[int]:
    return sorted(rows.column("v").to_pylist())


async def idle(cluster: ParallelCluster) -> None:
    await cluster.serving.idle()
    await settled(lambda: cluster.offered == 0, "no offer is left")


async def test_clients_read_a_distributed_answer_at_the_executors(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with parallel(tmp_path, tables) as cluster:
        info = await cluster.info(ALL)
        places = {each.place.location for each in cluster.parts.values()}
        assert {each.locations[0].uri.decode() for each in info.endpoints} == places
        assert len(info.endpoints) == 2 and not info.ordered
        assert cluster.offered == 2

        rows = await read_all(info.endpoints)
        assert (
            rows.schema
            == info.schema
            == pa.schema([("k", pa.int64()), ("v", pa.int64()), ("s", pa.string())])
        )
        assert numbers(rows) == list(range(ROWS))
        await idle(cluster)
        [task] = cluster.serving.services.history.table(None).to_pylist()
        assert task["labels"] is not None and ("rows_produced", str(ROWS)) in task["labels"]


async def test_ordered_answers_come_from_one_executor(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with parallel(tmp_path, tables) as cluster:
        wide = "SELECT repeat(s, 20) AS s, v FROM facts ORDER BY v DESC"
        info = await cluster.info(wide)
        assert info.ordered and len(info.endpoints) == 1
        assert info.endpoints[0].locations[0].uri.startswith(b"grpc+tcp://127.0.0.1:")
        rows = await read_all(info.endpoints)
        assert rows.column("v").to_pylist() == list(reversed(range(ROWS)))
        few = await cluster.info("SELECT k, count(*) AS n FROM facts GROUP BY k ORDER BY k LIMIT 3")
        assert [each.locations for each in few.endpoints] == [[]]


async def test_answers_of_few_rows_and_writes_have_one_endpoint_here(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with parallel(tmp_path, tables) as cluster:
        for sql in ("SELECT 1 AS a", "SELECT count(*) AS n FROM facts"):
            info = await cluster.info(sql)
            assert [each.locations for each in info.endpoints] == [[]], sql


@pytest.mark.parametrize("wish", ["x-spice-user-agent: spicepy 4", "x-caraway-endpoints: one"])
async def test_clients_that_read_one_endpoint_get_one(
    wish: str, tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    name, _, value = wish.partition(": ")
    async with parallel(tmp_path, tables) as cluster:
        options = headers(**{name: value})
        assert numbers(await cluster.serving.ask(query(ALL, options))) == list(range(ROWS))
        assert cluster.offered == 0


async def test_without_flight_at_every_executor_rows_pass_the_scheduler(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with parallel(tmp_path, tables, serving_at=["e1"]) as cluster:
        assert numbers(await cluster.serving.ask(query(ALL))) == list(range(ROWS))


async def test_endpoints_can_be_read_through_the_scheduler(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with parallel(tmp_path, tables, keys=KEYS) as cluster:
        info = await cluster.info(ALL, bearer("reader"))
        assert info.endpoints[0].locations[1].uri.startswith(b"arrow-flight-reuse-connection:")

        def both(to: flight.FlightClient) -> pa.Table:
            parts = [to.do_get(each.ticket, bearer("reader")) for each in info.endpoints]
            return pa.concat_tables(each.read_all() for each in parts)

        with pytest.raises(flight.FlightUnauthorizedError, match="another key"):
            await cluster.serving.ask(
                lambda to: to.do_get(info.endpoints[0].ticket, bearer("writer")).read_all()
            )
        rows = await cluster.serving.ask(both)
        assert rows.schema == info.schema
        assert numbers(rows) == list(range(ROWS))
        await idle(cluster)


async def test_tickets_of_others_forged_ones_and_used_ones_are_refused(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with parallel(tmp_path, tables, keys=KEYS) as cluster:
        info = await cluster.info(ALL, bearer("reader"))
        first, second = info.endpoints
        refused = (
            (first, None, flight.FlightUnauthenticatedError, "send the key"),
            (first, bearer("writer"), flight.FlightUnauthorizedError, "another key or session"),
            (first, bearer("nobody"), flight.FlightUnauthorizedError, "another key or session"),
        )
        for endpoint, options, error, words in refused:
            with pytest.raises(error, match=words):
                await asyncio.to_thread(read, endpoint, options)
        for ticket in (
            b"",
            b"garbage",
            b"\0part:",
            b"\0part:\xff:",
            first.ticket.ticket[:-1] + b"x",
        ):
            forged = flight.FlightEndpoint(ticket, first.locations)
            with pytest.raises(pa.ArrowInvalid, match="not valid here"):
                await asyncio.to_thread(read, forged, bearer("reader"))
        misled = flight.FlightEndpoint(first.ticket, second.locations)
        with pytest.raises(pa.ArrowKeyError, match="read each endpoint at its own locations"):
            await asyncio.to_thread(read, misled, bearer("reader"))

        rows = await read_all(info.endpoints, bearer("reader"))
        assert numbers(rows) == list(range(ROWS))
        with pytest.raises(pa.ArrowKeyError, match="can be read once"):
            await asyncio.to_thread(read, first, bearer("reader"))


async def test_session_ids_are_credentials_too(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with parallel(tmp_path, tables, keys=KEYS) as cluster:

        def session(to: flight.FlightClient) -> str:
            _, value = to.authenticate_basic_token(b"", b"reader")
            return str(value.decode()).removeprefix("Bearer ")

        token = await cluster.serving.ask(session)
        info = await cluster.info(ALL, bearer(token))
        assert numbers(await read_all(info.endpoints, bearer(token))) == list(range(ROWS))


async def test_an_expired_ticket_is_refused_and_its_rows_are_dropped(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with parallel(tmp_path, tables, ticket_ttl_s=0.2) as cluster:
        info = await cluster.info(ALL)
        await idle(cluster)
        # The rows are dropped at that time, and the ticket ends with its second.
        either = (flight.FlightUnavailableError, pa.ArrowKeyError)
        with pytest.raises(either, match=r"(in time|has expired); run the query again"):
            await asyncio.to_thread(read, info.endpoints[0])
        old = PartTicket(QueryId("q"), "o", ExecutorId("e1"), PrincipalId("public"), 1)
        expired = flight.FlightEndpoint(old.sealed(TOKEN), info.endpoints[0].locations)
        with pytest.raises(pa.ArrowKeyError, match="the ticket has expired; run the query again"):
            await asyncio.to_thread(read, expired)


async def test_a_reader_that_leaves_ends_the_statement_for_all(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with parallel(tmp_path, tables) as cluster:
        info = await cluster.info("SELECT a.v, repeat(a.s, 500) AS s FROM facts a")

        def leave() -> None:
            address = cluster.parts[ExecutorId("e1")].place.location.partition("://")[2]
            endpoint = next(
                each for each in info.endpoints if address.encode() in each.locations[0].uri
            )
            host, _, port = address.rpartition(":")
            with client(Address(host, int(port))) as connected:
                reader = connected.do_get(endpoint.ticket)
                reader.read_chunk()
                reader.cancel()

        await asyncio.to_thread(leave)
        await idle(cluster)
        other = next(
            each
            for each in info.endpoints
            if each.locations[0]
            .uri.decode()
            .endswith(cluster.parts[ExecutorId("e2")].place.location.rpartition(":")[2])
        )
        with pytest.raises(flight.FlightUnavailableError, match="the client went away"):
            await asyncio.to_thread(read, other)


async def test_losing_an_executor_tells_readers_of_the_others(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with parallel(tmp_path, tables) as cluster:
        info = await cluster.info(ALL)
        lost = cluster.parts[ExecutorId("e1")].place.location
        await cluster.cluster.fleet.lose(ExecutorId("e1"))
        await idle(cluster)
        for each in info.endpoints:
            if each.locations[0].uri.decode() != lost:
                with pytest.raises(
                    flight.FlightUnavailableError,
                    match=LOST,
                ):
                    await asyncio.to_thread(read, each)


async def test_a_cancelled_statement_ends_its_parts(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with parallel(tmp_path, tables) as cluster:
        info = await cluster.info(ALL)
        [active] = cluster.serving.services.queries.active.queries_of(PrincipalId("public"))
        active.stop("cancelled")
        await idle(cluster)
        with pytest.raises(flight.FlightUnavailableError, match="cancelled, or its time was over"):
            await asyncio.to_thread(read, info.endpoints[0])


async def test_executors_answer_nothing_but_tickets(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with parallel(tmp_path, tables) as cluster:
        info = await cluster.info(ALL)
        calls = (
            lambda to: to.get_flight_info(command("SELECT 1")),
            lambda to: list(to.list_flights()),
            lambda to: list(to.do_action("SubmitAsyncQuery")),
        )

        def ask() -> None:
            address = Address.parse(info.endpoints[0].locations[0].uri.decode().partition("://")[2])
            with client(address) as connected:
                for call in calls:
                    with pytest.raises(pa.ArrowNotImplementedError, match="ask a scheduler"):
                        call(connected)

        await asyncio.to_thread(ask)


async def test_an_executor_without_tls_is_not_named_to_clients_with_tls(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    make_certificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    certificate = (tmp_path / "tls.crt").read_bytes()
    tls = ServerTls(certificate, (tmp_path / "tls.key").read_bytes())
    trusting = {"scheme": "grpc+tls", "tls_root_certs": certificate}
    async with parallel(tmp_path, tables, tls=tls) as plain:
        info = await plain.serving.ask(lambda to: to.get_flight_info(command(ALL)), **trusting)
        assert [each.locations for each in info.endpoints] == [[]]
    (tmp_path / "state.db").unlink()
    files = tmp_path / "tls.crt", tmp_path / "tls.key"
    async with parallel(tmp_path, tables, tls=tls, certificate=files) as cluster:
        info = await cluster.serving.ask(lambda to: to.get_flight_info(command(ALL)), **trusting)
        assert all(each.locations[0].uri.startswith(b"grpc+tls://") for each in info.endpoints)
        parts = [await asyncio.to_thread(read, each, **trusting) for each in info.endpoints]
        assert numbers(pa.concat_tables(parts)) == list(range(ROWS))
