"""Two schedulers, two executors, a head, a store and a Valkey, any of which may crash or pause.

At the end, both schedulers have everything that was acknowledged, once; no read goes back in time.
CARAWAY_CHAOS_S sets how long faults continue, CARAWAY_CHAOS_SEED which ones occur.
"""

import random
from pathlib import Path

import pytest

from tests.kit.chaos.harming import RECOVERY_S, Harm
from tests.kit.chaos.keeping import kept_cluster
from tests.kit.chaos.load import LENGTH_S, SEED, Load, manifest
from tests.kit.chaos.sending import wait

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("kind", ["kills", "pauses", "mixed", "power_cuts", "rollouts"])
def test_acknowledged_work_survives_any_process(tmp_path: Path, kind: str) -> None:
    load = Load(tmp_path, SEED, keeps_tags=kind != "power_cuts")
    harm, findings = None, ["it did not come to the comparison"]
    try:
        with kept_cluster(tmp_path, lambda results: manifest(SEED, results)) as keeper:
            load.target.urls = keeper.urls
            harm = Harm(keeper, random.Random(SEED))
            with load.at_work():
                wait(3)
                harm.go_on(getattr(harm, kind)(), LENGTH_S)
            keeper.until_ready(RECOVERY_S)
            findings = load.check()
    finally:
        print(f"\n{kind}, seed {SEED}: {load.figures()}")
        print("answers:", dict(sorted(load.target.statuses.items())))
        if harm is not None:
            print(harm.report())
    assert not findings, "\n".join(findings)
    assert all(load.figures()[each] for each in ("rows", "updates", "refreshes", "jobs", "reads"))
