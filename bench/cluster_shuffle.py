"""A hash exchange of 1 GB between two executors, against Ray's transfer of the same objects."""

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
    """Run the exchange through the calls of the fleet, without SQL."""
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
        f"{ours:.0f} MB/s", f"{theirs:.0f} MB/s", ours / theirs, "none", True,
    )  # fmt: skip
    text = (
        f"Of the {found['seconds']:.2f} s, partitioning the rows by hash and writing them to the "
        f"object store takes {found['parting_seconds']:.2f} s. The rest moves "
        f"{found['moved_bytes'] / 1e6:.0f} MB to the other executor and counts the rows. Ray alone "
        f"takes {found['ray_seconds']:.2f} s."
    )
    return Section("cluster-shuffle", [figure], text)
