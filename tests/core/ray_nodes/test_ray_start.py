"""Ray's command line starts nodes without the imports of its other commands."""

import subprocess
import sys

COMMAND = ("-X", "importtime", "-m", "caraway_core.ray_nodes.ray_start", "start", "--help")


def test_a_node_is_started_without_services_jobs_and_states() -> None:
    ended = subprocess.run((sys.executable, *COMMAND), capture_output=True, text=True, check=True)

    assert "--runtime-env-agent-port" in ended.stdout
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "ray.scripts" in imported
    assert not {"ray.serve", "ray.dashboard.modules.job.utils", "fastapi"} & imported
