"""An earlier release of Caraway as processes of a cluster, from its commit."""

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.kit.ray_cluster import Host

ROOT = Path(__file__).parents[2]
EARLIER = "274796519eea498b6804104ea521e07eed480b58"
"""The release before: its tag, or the last commit that does not write BLAKE3 checksums."""
MANAGEMENT = "cd3eca22c1e7805b7643131bd8ce3024f6338d0e"
"""The release before of the management service, whose database an upgrade leaves at work."""
FIRST_MANAGEMENT = "3ad66c51854da01eadd2d9cb73f04ebe8f2a307d"
"""The first release of the management service, whose database has the first revision."""
VARIABLE = "CARAWAY_EARLIER"
"""The variable that names another commit or tag."""


def earlier(folder: Path, commit: str = "") -> Host:
    """Write the files of the release before to a folder; return how its processes are started.

    Its processes use the packages of this environment, so its requirements must be the same.
    """
    ref = commit or os.environ.get(VARIABLE) or EARLIER
    found = _git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    if found.returncode:
        pytest.skip(
            f"NO UPGRADE WAS TESTED: commit {ref} is not in this clone; fetch it with "
            "`git fetch --unshallow --tags`, or name another one in the variable " + VARIABLE
        )
    archive = _git("archive", "--format=tar", ref)
    folder.mkdir()
    subprocess.run(("tar", "-x", "-C", str(folder)), input=archive.stdout, check=True)
    _name_entry_points(folder)
    return _host(folder)


def _name_entry_points(folder: Path) -> None:
    """Write the entry points of a release where its processes find them before those of ours."""
    points = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [
        line
        for group, each in points.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in each.items()))
    ]
    described = folder / "core" / "caraway-0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: caraway\nVersion: 0\n")
    (described / "entry_points.txt").write_text("\n".join(lines) + "\n")


def current() -> Host:
    """Return how processes of this checkout are started."""
    return _host(ROOT)


def _host(folder: Path) -> Host:
    # These folders come before those of the installed package.
    roots = sorted({str(each.parent.parent) for each in folder.glob("*/caraway*/__init__.py")})
    return Host(environ={"PYTHONPATH": os.pathsep.join(roots)})


def _git(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(("git", "-C", str(ROOT), *arguments), capture_output=True, check=False)
