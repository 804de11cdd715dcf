"""Installs the wheel, as `pip install` would, in environments of their own."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PLACE = BIN.parent / "package"
_INSTALL_S = 600
IS_LATEST = os.environ.get("CARAWAY_LATEST") == "1"
"""True if packages have the newest versions, not those of the lock files."""


@functools.cache
def wheel() -> Path:
    """Build the wheel of this checkout."""
    folder = PLACE / f"wheel-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    ran([BIN / "python", "-m", "hatchling", "build", "-t", "wheel", "-d", folder])
    (found,) = folder.glob("*.whl")
    return found


@functools.cache
def environment(extra: str, *others: str, lock: str = "dev.txt") -> Path:
    """Make an environment with an extra of the wheel; return the folder of its programs.

    Files are hard links into a cache on the same disk.
    """
    if not (BIN / "uv").exists():
        pytest.skip("NOT TESTED: uv is not installed; run `make test-package`")
    # Of its own for each process of pytest-xdist, which would remove it for each other.
    folder = PLACE / os.environ.get("PYTEST_XDIST_WORKER", "alone") / (extra or "no-extra")
    ran([BIN / "uv", "venv", "--clear", "--python", sys.executable, folder])
    constraints: list[str | Path] = (
        [] if IS_LATEST else ["--constraint", ROOT / "requirements" / lock]
    )
    named = f"{wheel()}[{extra}]" if extra else wheel()
    ran(
        [
            BIN / "uv",
            "pip",
            "install",
            "--python",
            folder,
            "--no-config",
            *constraints,
            named,
            *others,
        ]
    )
    return folder / "bin"


def ran(
    command: list[str | Path], folder: Path | None = None, environ: Mapping[str, str] | None = None
) -> str:
    """Run a command that must succeed; return its output."""
    done = subprocess.run(
        command, cwd=folder, timeout=_INSTALL_S, capture_output=True, text=True,
        env={**os.environ, "UV_CACHE_DIR": str(PLACE / "cache"), **(environ or {})},
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout
