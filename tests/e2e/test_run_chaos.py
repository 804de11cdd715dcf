"""One process with a load of changes, refreshes and jobs, which is killed and paused."""

import contextlib
import random
import signal
from pathlib import Path

import pytest

from tests.kit.chaos.keeping import send
from tests.kit.chaos.load import LENGTH_S, SEED, Load, manifest
from tests.kit.chaos.sending import wait
from tests.kit.processes import Child, child
from tests.kit.ray_cluster import descendants

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("kind", ["kills", "pauses", "mixed"])
def test_acknowledged_work_of_one_process_survives_it(tmp_path: Path, kind: str) -> None:
    # Settings of a standalone process end with it.
    load = Load(tmp_path, SEED, keeps_tags=kind == "pauses")
    file = tmp_path / "caraway.yaml"
    file.write_text(manifest(SEED))
    chosen, faults = random.Random(SEED), 0
    with contextlib.ExitStack() as stack:

        def serve() -> Child:
            made = stack.enter_context(child(tmp_path, file))
            load.target.urls["only"] = f"http://{made.addresses['http']}"
            return made

        caraway = serve()
        with load.at_work():
            for _ in range(max(2, int(LENGTH_S / 8))):
                wait(chosen.uniform(1, 5))
                faults += 1
                pid = caraway.process.pid
                below = list(descendants(pid))
                # Kill the engine process alone, or everything.
                pids = below if chosen.random() < 0.3 else [pid, *below]
                if kind == "pauses" or (kind == "mixed" and faults % 2):
                    send(pids, signal.SIGSTOP)
                    wait(chosen.uniform(0.5, 14))
                    send(pids, signal.SIGCONT)
                    continue
                send(pids, signal.SIGKILL)
                if pid in pids:
                    caraway.wait()
                    caraway = serve()
        findings = load.check()
    print(f"\n{kind}, seed {SEED}: {faults} faults, {load.figures()}")
    print("answers:", dict(sorted(load.target.statuses.items())))
    assert not findings, "\n".join(findings)
    assert all(load.figures()[each] for each in ("rows", "updates", "refreshes", "jobs", "reads"))
