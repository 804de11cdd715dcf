"""Sockets of processes: the error of an address that cannot be bound names the flag to change."""

import asyncio
import socket

import pytest

from caraway_core.errors import CarawayError
from caraway_core.settings import Address
from caraway_serving import listeners


def test_port_zero_is_a_free_port() -> None:
    with listeners.bind(Address("127.0.0.1", 0), "--http") as one:
        with listeners.bind(Address("127.0.0.1", 0), "--http") as other:
            addresses = listeners.bound_address(one), listeners.bound_address(other)
    assert addresses[0].port != addresses[1].port and all(each.port for each in addresses)
    assert {each.host for each in addresses} == {"127.0.0.1"}


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_socket_listens_and_does_not_block(host: str) -> None:
    with listeners.bind(Address(host, 0), "--http") as listener:
        assert not listener.getblocking()
        address = listeners.bound_address(listener)
        with socket.create_connection((address.host, address.port), 10):
            pass


async def test_answers_in_several_pieces_are_sent_without_delay() -> None:
    no_delay = asyncio.get_running_loop().create_future()

    def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted = writer.get_extra_info("socket")
        no_delay.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with listeners.bind(Address("127.0.0.1", 0), "--http") as listener:
        address = listeners.bound_address(listener)
        async with await asyncio.start_server(connected, sock=listener):
            _, writer = await asyncio.open_connection(address.host, address.port)
            assert await no_delay == 1
            writer.close()
            await writer.wait_closed()


@pytest.mark.parametrize("flag", ["--http", "--flight", "--metrics"])
def test_a_port_in_use_is_named_with_the_flag_that_changes_it(flag: str) -> None:
    with listeners.bind(Address("127.0.0.1", 0), "--http") as taken:
        address = listeners.bound_address(taken)
        with pytest.raises(CarawayError, match=rf"another address with {flag} HOST:PORT") as caught:
            listeners.bind(address, flag)
        assert str(address) in caught.value.message and "in use" in caught.value.message
    # The port of a socket that was closed is free at once.
    listeners.bind(address, flag).close()


@pytest.mark.parametrize("host", ["192.0.2.1", "name.that.does.not.exist.invalid"])
def test_an_address_of_another_host_is_an_error(host: str) -> None:
    with pytest.raises(CarawayError, match=f"cannot listen on {host}:0: "):
        listeners.bind(Address(host, 0), "--http")
