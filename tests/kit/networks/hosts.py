"""Makes hosts: network namespaces with one address each, joined by a switch."""

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.kit.networks import switch
from tests.kit.networks.switch import Pair, Rules

_TUN = "/dev/net/tun"
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_CLONE_NEWNET = 0x40000000
_MTU = 9000


def missing() -> str:
    """Return why hosts cannot be made here, or "" if they can."""
    if shutil.which("ip") is None:
        return "the command `ip` is missing: install iproute2"
    if not os.access(_TUN, os.R_OK | os.W_OK):
        return f"{_TUN} cannot be opened"
    name = f"cw-try-{os.getpid()}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if tried.returncode:
        return f"`ip netns add` fails: {tried.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=False)
    return ""


@dataclass(slots=True)
class Network:
    """Hosts by their names. The process that made it is at `outside`."""

    prefix: str
    """The first three numbers of each address."""
    addresses: dict[str, str] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)
    _mark: str = ""
    _switch: "subprocess.Popen[str] | None" = None

    def within(self, host: str) -> Sequence[str]:
        """Return what to put before a command that runs on the host."""
        return ("ip", "netns", "exec", self._namespace(host))

    def change(self, rules: Rules) -> None:
        assert self._switch is not None and self._switch.stdin is not None
        self.rules = rules
        self._switch.stdin.write(rules.line())
        self._switch.stdin.flush()

    @contextlib.contextmanager
    def cut(self, *pairs: Pair) -> Iterator[None]:
        """Lose all packets from the first host of each pair to the second."""
        addresses = tuple((self.addresses[a], self.addresses[b]) for a, b in pairs)
        before = self.rules
        self.change(replace(before, cut=(*before.cut, *addresses)))
        try:
            yield
        finally:
            self.change(before)

    def others(self, host: str) -> Sequence[str]:
        return [each for each in self.addresses if each != host]

    def _namespace(self, host: str) -> str:
        return f"{self._mark}-{host}"


@contextlib.contextmanager
def network(prefix: str, hosts: dict[str, int], seed: int = 1) -> Iterator[Network]:
    """Make a network; `hosts` has the last number of each host's address.

    This process gets the addresses of the host `outside`, and of those that begin with `outside`.
    """
    made = Network(prefix, {name: f"{prefix}.{number}" for name, number in hosts.items()})
    made._mark = f"cw{os.getpid()}"
    devices: dict[str, int] = {}
    try:
        for name, address in made.addresses.items():
            if name.startswith("outside"):
                devices[address] = _here(f"{made._mark}-{hosts[name]}", address, prefix)
            else:
                devices[address] = _host(made._namespace(name), address, prefix)
        made._switch = subprocess.Popen(
            [sys.executable, "-I", "-S", switch.__file__, str(seed), json.dumps(devices)],
            stdin=subprocess.PIPE, text=True, pass_fds=list(devices.values()),
            start_new_session=True,
        )  # fmt: skip
        yield made
    finally:
        if made._switch is not None and made._switch.stdin is not None:
            made._switch.stdin.close()
            made._switch.wait(30)
        for fd in devices.values():
            os.close(fd)
        for name in made.addresses:
            if not name.startswith("outside"):
                subprocess.run(["ip", "netns", "del", made._namespace(name)], check=False)


def _here(device: str, address: str, prefix: str) -> int:
    fd = _opened(device)
    _ip("addr", "add", f"{address}/32", "dev", device)
    _up(device)
    # With several devices, each has a route; any of them leads to the switch.
    _ip("route", "append", f"{prefix}.0/24", "dev", device, "src", address)
    return fd


def _host(namespace: str, address: str, prefix: str) -> int:
    _ip("netns", "add", namespace)
    made: list[int] = []
    failures: list[BaseException] = []

    def open_within() -> None:
        try:
            # A namespace belongs to a thread, and this thread ends.
            libc = ctypes.CDLL(None, use_errno=True)
            with Path(f"/var/run/netns/{namespace}").open() as file:
                if libc.setns(file.fileno(), _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            made.append(_opened("net0"))
        except BaseException as exc:
            failures.append(exc)

    thread = threading.Thread(target=open_within)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    within = ("-n", namespace)
    _ip(*within, "addr", "add", f"{address}/24", "dev", "net0")
    _up("net0", *within)
    _up("lo", *within)
    assert prefix in address
    return made[0]


def _up(device: str, *within: str) -> None:
    if device != "lo":
        _ip(*within, "link", "set", device, "mtu", str(_MTU))
    _ip(*within, "link", "set", device, "up")


def _opened(device: str) -> int:
    fd = os.open(_TUN, os.O_RDWR | os.O_CLOEXEC)
    fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH14x", device.encode(), _IFF_TUN | _IFF_NO_PI))
    return fd


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
