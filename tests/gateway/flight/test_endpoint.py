"""Starting and stopping."""

import asyncio
import datetime
import ipaddress
import threading
from typing import Any

import pyarrow as pa
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pyarrow import flight

from caraway_core.errors import CarawayError
from caraway_core.settings import Address
from caraway_gateway.flight import FlightEndpoint
from caraway_scheduler.queries.active import ActiveQuery
from caraway_serving.tls import ServerTls
from tests.gateway.flight.serving import client, command, query, serving


async def test_taken_port_is_told_with_what_to_do() -> None:
    async with serving() as server:
        second = FlightEndpoint(server.services, asyncio.get_running_loop(), server.address)
        with pytest.raises(CarawayError, match=r"cannot listen on .*Address already in use.*--fl"):
            second.start()


async def test_stopped_endpoint_frees_its_port() -> None:
    async with serving() as server:
        await server.endpoint.stop(5)
        with pytest.raises(flight.FlightUnavailableError):
            await server.ask(query("SELECT 1"))
        again = FlightEndpoint(server.services, asyncio.get_running_loop(), server.address)
        assert again.start() == server.address
        await again.stop(5)


async def test_stop_lets_a_reader_finish() -> None:
    reading, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def read(connected: Any) -> int:
        reader = connected.do_get(flight.Ticket(b"SELECT value FROM generate_series(1, 1000000)"))
        rows = reader.read_chunk().data.num_rows
        loop.call_soon_threadsafe(reading.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(60)
        return int(rows + reader.read_all().num_rows)

    async with serving() as server:
        asked = asyncio.create_task(server.ask(read))
        await reading.wait()
        stopping = asyncio.create_task(server.endpoint.stop(10))
        go_on.set()
        assert await asked == 1_000_000
        await stopping


async def test_drain_closes_kept_connections_and_lets_a_reader_finish() -> None:
    reading, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def read(connected: Any) -> int:
        reader = connected.do_get(flight.Ticket(b"SELECT value FROM generate_series(1, 1000000)"))
        rows = reader.read_chunk().data.num_rows
        loop.call_soon_threadsafe(reading.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(60)
        return int(rows + reader.read_all().num_rows)

    def keep(connected: Any) -> str:
        assert query("SELECT 1 AS a")(connected).num_rows == 1
        asyncio.run_coroutine_threadsafe(server.endpoint.drain(), loop).result(60)
        for _ in range(100):
            try:
                query("SELECT 1 AS a")(connected)
            except flight.FlightCancelledError:
                continue  # gRPC cancels a call that crosses the end of the connection.
            except flight.FlightUnavailableError as refused:
                return str(refused)
            return "it was answered"
        return "it was cancelled each time"

    async with serving() as server:
        asked = asyncio.create_task(server.ask(read))
        await reading.wait()
        # gRPC tries the address again, where no server listens: a Service would lead elsewhere.
        assert "failed to connect" in await server.ask(keep)
        go_on.set()
        assert await asked == 1_000_000


async def test_an_answer_that_was_begun_is_fetched_over_its_connection_while_draining() -> None:
    loop = asyncio.get_running_loop()

    def fetch(connected: Any) -> int:
        found = connected.get_flight_info(command("SELECT value FROM generate_series(1, 1000000)"))
        draining = asyncio.run_coroutine_threadsafe(server.endpoint.drain(), loop)
        rows = connected.do_get(found.endpoints[0].ticket).read_all().num_rows
        draining.result(60)
        return int(rows)

    async with serving() as server:
        assert await server.ask(fetch) == 1_000_000


async def test_stop_cuts_off_what_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    started = asyncio.Event()
    async with serving() as server:
        active = server.services.queries.active
        add = active.add

        def noticed(statement: ActiveQuery) -> None:
            add(statement)
            started.set()

        monkeypatch.setattr(active, "add", noticed)
        slow = asyncio.create_task(
            server.ask(query("SELECT count(*) FROM generate_series(1, 4000000000)"))
        )
        await started.wait()
        await server.endpoint.stop(0.1)
        with pytest.raises(flight.FlightUnavailableError, match="shutting down"):
            await slow
        await server.idle()


async def test_stop_cuts_off_a_client_that_has_stopped_reading() -> None:
    reading, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def read(connected: Any) -> None:
        reader = connected.do_get(
            flight.Ticket(b"SELECT value FROM generate_series(1, 1000000000)")
        )
        reader.read_chunk()
        loop.call_soon_threadsafe(reading.set)
        assert go_on.wait(60)
        reader.read_all()

    async with serving() as server:
        asked = asyncio.create_task(server.ask(read))
        await reading.wait()
        await server.endpoint.stop(0.1)
        for thread in threading.enumerate():
            if thread.name == "flight-stop":
                await asyncio.to_thread(thread.join, 5)
                assert not thread.is_alive()
        await server.idle()
        go_on.set()
        with pytest.raises(pa.ArrowException):
            await asked


async def test_stop_ends_answers_that_wait() -> None:
    async with serving() as server:
        sql = "SELECT value FROM generate_series(1, 1000000)"
        await server.ask(lambda c: c.get_flight_info(command(sql)))
        assert len(server.services.queries.active) == 1
        await server.endpoint.stop(5)
        await server.idle()


async def test_stop_before_start_does_nothing() -> None:
    async with serving() as server:
        unused = FlightEndpoint(server.services, asyncio.get_running_loop(), server.address)
        await unused.stop(1)


async def test_tls() -> None:
    certificate, key = _certificate()
    async with serving(tls=ServerTls(certificate, key)) as server:

        def ask() -> int:
            with client(server.address, "grpc+tls", tls_root_certs=certificate) as connected:
                return int(query("SELECT 1")(connected).num_rows)

        assert await asyncio.to_thread(ask) == 1


async def test_client_must_have_a_certificate_of_the_authority() -> None:
    certificate, key = _certificate()
    client_certificate, client_key = _certificate()
    other = _certificate()
    tls = ServerTls(certificate, key, client_certificate)
    async with serving(tls=tls) as server:

        def ask(*pair: bytes) -> int:
            own = dict(zip(("cert_chain", "private_key"), pair, strict=False))
            options = {"tls_root_certs": certificate, **own}
            with client(server.address, "grpc+tls", **options) as connected:
                limit = flight.FlightCallOptions(timeout=20)
                return int(query("SELECT 1", limit)(connected).num_rows)

        assert await asyncio.to_thread(ask, client_certificate, client_key) == 1
        for pair in ((), other):
            with pytest.raises(flight.FlightUnavailableError):
                await asyncio.to_thread(ask, *pair)


async def test_ipv6() -> None:
    async with serving(address=Address("::1", 0)) as server:
        assert (await server.ask(query("SELECT 1"))).num_rows == 1


def _certificate() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(here, critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
