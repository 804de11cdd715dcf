"""A release is built twice, and the source builds the same wheel."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from caraway_core.releases.version import __version__
from tools import dist

pytestmark = pytest.mark.full


def test_a_release_is_equal_twice_and_its_source_builds_its_wheel(tmp_path: Path) -> None:
    for name in ("first", "second"):
        dist.build(tmp_path / name)
    sums = (tmp_path / "first" / "SHA256SUMS").read_text()
    assert sums == (tmp_path / "second" / "SHA256SUMS").read_text()
    assert len(sums.splitlines()) == 5
    subprocess.run(
        ["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path / "first", check=True
    )
    with tarfile.open(tmp_path / "first" / f"caraway-{__version__}.tar.gz") as source:
        source.extractall(tmp_path, filter="data")
    folder = tmp_path / f"caraway-{__version__}"
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again"],
        cwd=folder,
        check=True,
    )
    (first,), (again,) = (tmp_path / "first").glob("*.whl"), (tmp_path / "again").glob("*.whl")
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(again) as other:
        assert one.namelist() == other.namelist()
        assert "caraway_serving/console/files/index.html" in one.namelist()
    shutil.rmtree(folder)
