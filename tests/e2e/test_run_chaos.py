"""One process with a load of changes, refreshes and jobs, which is killed and paused meanwhile."""

import contextlib
import os
import random
import signal
from pathlib import Path

import pytest

from tests.kit.chaos import LENGTH_S, MANIFEST, SEED, Chaos, wait, write_sources
from tests.kit.processes import Child, child

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("kind", ["kills", "pauses"])
def test_what_one_process_acknowledged_outlives_it(tmp_path: Path, kind: str) -> None:
    write_sources(tmp_path)
    manifest = tmp_path / "caraway.yaml"
    manifest.write_text(MANIFEST)
    chosen, urls = random.Random(SEED), dict[str, str]()
    load = Chaos(tmp_path, urls, SEED)
    with contextlib.ExitStack() as stack:

        def serve() -> Child:
            made = stack.enter_context(child(tmp_path, manifest))
            urls["only"] = f"http://{made.addresses['http']}"
            return made

        caraway = serve()
        faults = 0
        with load.at_work():
            for _ in range(max(2, int(LENGTH_S / 8))):
                wait(chosen.uniform(1, 5))
                faults += 1
                if kind == "pauses":
                    os.kill(caraway.process.pid, signal.SIGSTOP)
                    wait(chosen.uniform(0.5, 6))
                    os.kill(caraway.process.pid, signal.SIGCONT)
                else:
                    caraway.signal(signal.SIGKILL)
                    caraway.wait()
                    caraway = serve()
        findings = load.check()
    print(kind, {"faults": faults}, load.told())
    assert not findings, "\n".join(findings)
    assert load.ledger.acknowledged and load.jobs and load.number and load.reads
