"""Fault injection: each kind is a list of named faults for the processes of a cluster."""

import itertools
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tests.kit.chaos.keeping import (
    EXECUTORS,
    HEAD,
    HOSTS,
    SCHEDULERS,
    STORE,
    VALKEY,
    Keeper,
    send,
)
from tests.kit.chaos.sending import wait
from tests.kit.networks.hosts import Network
from tests.kit.networks.switch import Pair, Rules
from tests.kit.ray_cluster import ACTOR

BETWEEN_S = (1.0, 4.0)
PAUSE_S = (0.5, 14.0)
"""Claims last 10 s, and a killed node is dead after 10 s, so some pauses look like deaths."""
CUT_S = (1.0, 25.0)
"""The head tolerates 100 s; heartbeats are lost after 5 s and claims after 10 s."""
RECOVERY_S = 600.0
"""On a loaded machine, a process and its Ray node take a minute or two to start."""
ROLLOUT = ("e1", *SCHEDULERS, "e2", VALKEY, STORE, HEAD)
"""The order in which the operator replaces pods."""
_CHILDREN = (
    ("actor of e1", "e1", ACTOR),
    ("raylet of e2", "e2", "/raylet/raylet"),
    ("raylet of s1", "s1", "/raylet/raylet"),
    ("gcs of head", HEAD, "gcs_server"),
)
Fault = Callable[[], None]
Harming = Callable[[Sequence[int]], None]
Rounds = Sequence[Mapping[str, Fault]]


class Harm:
    """Injects faults into the processes of a cluster."""

    def __init__(self, keeper: Keeper, chosen: random.Random) -> None:
        self.log: list[str] = []
        self.recoveries_s: list[float] = []
        self._keeper = keeper
        self._chosen = chosen

    def kills(self) -> Rounds:
        """Kill each main process, then all processes of each pod, then processes inside pods."""
        return (self._main(self._kill), self._pods(self._kill), self._children(self._kill))

    def pauses(self) -> Rounds:
        within = self._children(self._pause) | self._main(self._pause)
        return (self._pods(self._pause), within)

    def mixed(self) -> Rounds:
        """Kill and pause."""
        kills = {f"kill {name}": fault for name, fault in self._main(self._kill).items()}
        pauses = {f"pause {name}": fault for name, fault in self._pods(self._pause).items()}
        return (kills | pauses,)

    def power_cuts(self) -> Rounds:
        """Kill all processes at once."""
        return ({"everything": self._cut_power},)

    def rollouts(self) -> Rounds:
        """Replace each process in the operator's order, while other processes are killed."""
        return ({"rollout": self._roll_out},)

    def partitions(self, network: Network) -> Rounds:
        """Cut each process off from all others, both ways and one way, then pairs of processes."""
        names = {each.removeprefix("outside-"): each for each in HOSTS if each != "outside"}
        alone: dict[str, Fault] = {}
        for told, name in names.items():
            to = [(each, name) for each in network.others(name)]
            of = [(name, each) for each in network.others(name)]
            alone |= {
                f"cut {told} off": self._cut(network, [*to, *of]),
                f"cut what is sent to {told}": self._cut(network, to),
                f"cut what {told} sends": self._cut(network, of),
            }
        pairs = {
            f"cut {one} and {two}": self._cut(network, [(one, two), (two, one)])
            for one, two in (("head", "e1"), ("head", "s1"), ("s1", "e1"), ("e1", "e2"))
        }
        return (alone | pairs,)

    def bad_networks(self, network: Network) -> Rounds:
        """Delay and lose packets, while processes are killed or cut off."""
        bad = {
            "delay 50 to 100 ms": self._worse(network, Rules(delay_s=0.05, jitter_s=0.05)),
            "lose 2 percent": self._worse(network, Rules(loss=0.02)),
            "delay 10 to 40 ms, lose 1 percent": self._worse(
                network, Rules(delay_s=0.01, jitter_s=0.03, loss=0.01)
            ),
        }
        kills = {f"kill {name}": fault for name, fault in self._main(self._kill).items()}
        return (bad, kills, bad, self.partitions(network)[0])

    def _cut(self, network: Network, pairs: Sequence[Pair]) -> Fault:
        def fault() -> None:
            with network.cut(*pairs):
                wait(self._chosen.uniform(*CUT_S))

        return fault

    def _worse(self, network: Network, rules: Rules) -> Fault:
        """Change the network, which stays so during the next faults."""
        return lambda: network.change(rules)

    def go_on(self, rounds: Rounds, length_s: float) -> None:
        """Inject all faults of each round in random order, repeatedly, for the given time.

        Most faults wait until the previous one is over; some come earlier.
        """
        end = time.monotonic() + length_s
        for faults in itertools.cycle(rounds):
            for name in self._chosen.sample(sorted(faults), len(faults)):
                if time.monotonic() > end:
                    return
                self._do(name, faults)
                wait(self._chosen.uniform(*BETWEEN_S))

    def report(self) -> str:
        """Return a report of the faults and of the processes that they ended."""
        most_s = max(self.recoveries_s, default=0)
        first = f"{len(self.log)} faults; both schedulers ready again after {most_s:.1f} s at most"
        return "\n".join([first, *self.log, *self._keeper.ends])

    def _do(self, name: str, faults: Mapping[str, Fault]) -> None:
        began = time.monotonic()
        faults[name]()
        took_s = time.monotonic() - began
        told = f"{time.strftime('%H:%M:%S', time.gmtime())} {name} ({took_s:.1f} s)"
        if self._chosen.random() < 0.8:
            wait(0.3)
            recovery_s = self._keeper.until_ready(RECOVERY_S)
            self.recoveries_s.append(recovery_s)
            told += f", ready after {recovery_s:.1f} s"
        self.log.append(told)

    def _main(self, do: Harming) -> dict[str, Fault]:
        """Apply the fault to the main process of each pod."""
        names = (*SCHEDULERS, *EXECUTORS, HEAD, STORE, VALKEY)
        return {name: _fault(do, partial(self._keeper.alone, name)) for name in names}

    def _pods(self, do: Harming) -> Mapping[str, Fault]:
        """Apply the fault to all processes of each pod at once."""
        names = (*SCHEDULERS, *EXECUTORS, HEAD, STORE, VALKEY)
        return {f"pod {name}": _fault(do, partial(self._keeper.pids, name)) for name in names}

    def _children(self, do: Harming) -> dict[str, Fault]:
        find = self._keeper.child
        return {told: _fault(do, partial(find, name, title)) for told, name, title in _CHILDREN}

    def _kill(self, pids: Sequence[int]) -> None:
        send(pids, signal.SIGKILL)

    def _pause(self, pids: Sequence[int]) -> None:
        send(pids, signal.SIGSTOP)
        try:
            wait(self._chosen.uniform(*PAUSE_S))
        finally:
            send(pids, signal.SIGCONT)

    def _cut_power(self) -> None:
        with self._keeper.held():
            send(self._keeper.all_pids(), signal.SIGKILL)
            wait(0.5)

    def _roll_out(self) -> None:
        for name in ROLLOUT:
            pid = self._keeper.pid(name)
            send([pid], signal.SIGTERM)
            if self._chosen.random() < 0.5:
                wait(self._chosen.uniform(0.1, 3))
                other = self._chosen.choice([each for each in ROLLOUT if each != name])
                self.log.append(f"  {other} killed while {name} is replaced")
                self._kill([self._keeper.pid(other)])
            self._keeper.until_replaced(name, pid)
            self._keeper.until_ready(RECOVERY_S)


def _fault(do: Harming, find: Callable[[], Sequence[int]]) -> Fault:
    """Apply the fault to the processes that exist at that time."""

    def fault() -> None:
        do(find())

    return fault
