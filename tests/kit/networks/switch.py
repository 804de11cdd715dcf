"""Moves packets between hosts: `switch.py` reads one JSON object of `Rules` a line from its input.

It is a process of its own, so that the load of a test does not delay packets. It needs no module of
the kernel for delays and losses, and works where `tc netem` does not.
"""

import heapq
import json
import os
import random
import selectors
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass

_MOST_BYTES = 65535
_MOST_WAITING = 20_000
_SOURCE, _TARGET = slice(12, 16), slice(16, 20)
_IPV4 = 4
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Rules:
    """The treatment of packets. Each pair in `cut` is the sender and the receiver."""

    cut: tuple[Pair, ...] = ()
    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0

    def line(self) -> str:
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def parse(cls, line: str) -> "Rules":
        fields = json.loads(line)
        return cls(**{**fields, "cut": tuple((a, b) for a, b in fields["cut"])})


class Switch:
    """Passes packets to the devices of their receivers, by the rules of the moment."""

    def __init__(self, devices: Mapping[str, int], seed: int) -> None:
        self._devices = {socket.inet_aton(address): fd for address, fd in devices.items()}
        self._chosen = random.Random(seed)
        self._waiting: list[tuple[float, int, int, bytes]] = []
        self._count = 0
        self.set(Rules())

    def set(self, rules: Rules) -> None:
        self._rules = rules
        self._cut = {socket.inet_aton(a) + socket.inet_aton(b) for a, b in rules.cut}

    def accept(self, packet: bytes, now: float) -> None:
        """Take a packet, which is delivered later, or never."""
        device = self._devices.get(packet[_TARGET])
        if device is None or packet[0] >> 4 != _IPV4:
            return
        rules = self._rules
        if self._cut and packet[_SOURCE] + packet[_TARGET] in self._cut:
            return
        if rules.loss and self._chosen.random() < rules.loss:
            return
        if not rules.delay_s and not self._waiting:
            return _write(device, packet)
        if len(self._waiting) < _MOST_WAITING:
            self._count += 1
            at = now + rules.delay_s + self._chosen.random() * rules.jitter_s
            heapq.heappush(self._waiting, (at, self._count, device, packet))

    def deliver(self, now: float) -> float | None:
        """Deliver the packets that are due; return the seconds until the next packet is."""
        while self._waiting and self._waiting[0][0] <= now:
            _, _, device, packet = heapq.heappop(self._waiting)
            _write(device, packet)
        return max(0.0, self._waiting[0][0] - now) if self._waiting else None


def _write(device: int, packet: bytes) -> None:
    try:
        os.write(device, packet)
    except OSError:
        pass  # The host's queue is full, or it has no listener: networks lose packets.


def main(seed: int, devices: Mapping[str, int]) -> None:
    switch, wire = Switch(devices, seed), selectors.DefaultSelector()
    for fd in (*devices.values(), 0):
        os.set_blocking(fd, False)
        wire.register(fd, selectors.EVENT_READ)
    text = b""
    while True:
        for key, _ in wire.select(switch.deliver(time.monotonic())):
            try:
                read = os.read(key.fd, _MOST_BYTES)
            except BlockingIOError:
                continue
            if key.fd:
                switch.accept(read, time.monotonic())
                continue
            if not read:
                return
            *lines, text = (text + read).split(b"\n")
            for line in lines:
                switch.set(Rules.parse(line.decode()))


if __name__ == "__main__":
    main(int(sys.argv[1]), json.loads(sys.argv[2]))
