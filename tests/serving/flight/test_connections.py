"""Connections of clients that are cut: those of a port or of one client, and no others."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from caraway_serving.flight import connections


@contextmanager
def connected(count: int, host: str = "127.0.0.1") -> Iterator[tuple[int, list[socket.socket]]]:
    """A port with this many clients, whose connections this process has accepted."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened: list[socket.socket] = []
    try:
        listener = socket.socket(family)
        opened.append(listener)
        listener.bind((host, 0))
        listener.listen()
        port = listener.getsockname()[1]
        clients = []
        for _ in range(count):
            clients.append(socket.create_connection((host, port), 10))
            opened += [clients[-1], listener.accept()[0]]
        yield port, clients
    finally:
        for each in opened:
            each.close()


def is_cut(client: socket.socket) -> bool:
    client.settimeout(0.2)
    try:
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_all_clients_of_a_port_are_cut_and_those_of_others_stay(host: str) -> None:
    with connected(3, host) as (port, clients), connected(1, host) as (_, others):
        connections.cut(port)
        assert all(map(is_cut, clients)) and not is_cut(others[0])


@pytest.mark.parametrize(("host", "kind"), [("127.0.0.1", "ipv4:{}:{}"), ("::1", "ipv6:[{}]:{}")])
def test_one_client_is_cut_by_the_name_that_grpc_gives_it(host: str, kind: str) -> None:
    with connected(3, host) as (port, clients):
        client = clients[1].getsockname()
        connections.cut(port, kind.format(*client[:2]))
        assert [is_cut(each) for each in clients] == [False, True, False]


@pytest.mark.parametrize("peer", ["ipv4:127.0.0.1:1", "unix:", "nonsense"])
def test_a_client_that_is_not_there_cuts_nobody(peer: str) -> None:
    with connected(1) as (port, clients):
        connections.cut(port, peer)
        connections.cut(0)
        assert not is_cut(clients[0])


def test_cutting_leaves_no_descriptor_open() -> None:
    with connected(5) as (port, _):
        before = len(os.listdir("/dev/fd"))
        for _ in range(20):
            connections.cut(port)
        # Fewer are no fault: others in this process may close theirs meanwhile.
        assert len(os.listdir("/dev/fd")) <= before
