"""A hash exchange of 1 GB between two executors, beside Ray's own transfer of the same objects."""

import json
import subprocess
import sys
from pathlib import Path

from bench import clusters, data
from bench.report import Figure, Section
from bench.settings import Settings

_ROOT = Path(__file__).parent.parent
_LIMIT_S = 300.0


def measure(settings: Settings) -> Section:
    """Drive the exchange through the fleet's own calls, without SQL around it."""
    size_mb = int(1000 * min(1.0, float(settings.scale)))
    manifest = data.manifest(data.tpch(settings.scale))
    with clusters.cluster(manifest, executors=2) as cluster:
        executors = [
            f"{name}={ip}" for name, ip in cluster.addresses.items() if name.startswith("executor")
        ]
        done = subprocess.run(
            [sys.executable, "-m", "bench.shuffling", str(cluster.head),
             cluster.addresses["scheduler"], str(cluster.token_file), str(size_mb),
             str(settings.runs), *executors],
            cwd=_ROOT, stdout=subprocess.PIPE, text=True, timeout=_LIMIT_S, check=True,
        )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    ours, theirs = (found["size_bytes"] / 1e6 / found[key] for key in ("seconds", "ray_seconds"))
    figure = Figure(
        f"hash exchange of {found['size_bytes'] / 1e6:.0f} MB between two executors; Ray alone "
        "moving the same objects",
        f"{ours:.0f} MB/s", f"{theirs:.0f} MB/s", ours / theirs, "told", True,
    )  # fmt: skip
    text = (
        f"Of the {found['seconds']:.2f} s, {found['parting_seconds']:.2f} s part the rows by hash "
        f"and leave them in the store; the rest moves {found['moved_bytes'] / 1e6:.0f} MB to the "
        f"other executor and counts the rows. Ray alone takes {found['ray_seconds']:.2f} s."
    )
    return Section("cluster-shuffle", [figure], text)
