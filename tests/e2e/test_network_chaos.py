"""Two schedulers, two executors, a head, a store and a Valkey on hosts in a bad network.

Each process is a network namespace. Packets are delayed and lost, each process is cut off from the
others, also in one direction, and the clocks of a scheduler and an executor are ten minutes ahead.
At the end, both schedulers have everything that was acknowledged, once. CARAWAY_CHAOS_S sets how
long faults continue, CARAWAY_CHAOS_SEED which ones occur.
"""

import os
import random
import warnings
from pathlib import Path

import pytest

from tests.kit.chaos.harming import RECOVERY_S, Harm
from tests.kit.chaos.keeping import HOSTS, kept_cluster
from tests.kit.chaos.load import LENGTH_S, SEED, Load, manifest
from tests.kit.chaos.sending import wait
from tests.kit.networks import hosts
from tests.kit.networks.switch import Rules

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("kind", ["partitions", "bad_networks"])
def test_acknowledged_work_survives_the_network(tmp_path: Path, kind: str) -> None:
    if reason := hosts.missing():
        warnings.warn(f"the network was not harmed: {reason}", stacklevel=1)
        pytest.skip(reason)
    load = Load(tmp_path, SEED, keeps_tags=True)
    harm, findings = None, ["it did not come to the comparison"]
    prefix = f"10.{64 + os.getpid() % 128}.{os.getpid() // 128 % 256}"
    try:
        with (
            hosts.network(prefix, HOSTS, SEED) as network,
            kept_cluster(tmp_path, lambda results: manifest(SEED, results), network) as keeper,
        ):
            load.target.urls = keeper.urls
            harm = Harm(keeper, random.Random(SEED))
            with load.at_work():
                wait(3)
                harm.go_on(getattr(harm, kind)(network), LENGTH_S)
                network.change(Rules())
            keeper.until_ready(RECOVERY_S)
            findings = load.check()
    finally:
        print(f"\n{kind}, seed {SEED}: {load.figures()}")
        print("answers:", dict(sorted(load.target.statuses.items())))
        if harm is not None:
            print(harm.report())
    assert not findings, "\n".join(findings)
    assert all(load.figures()[each] for each in ("rows", "updates", "refreshes", "jobs", "reads"))
