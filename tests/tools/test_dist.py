import gzip
import hashlib
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from caraway_core.releases.version import __version__
from tests.kit import helm
from tools import dist

MADE_AT = 1_700_000_000


def names(packed: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as tar:
        return tar.getnames()


def test_helm_reads_the_packaged_chart(tmp_path: Path) -> None:
    package = tmp_path / f"caraway-{__version__}.tgz"
    package.write_bytes(dist.chart(MADE_AT))
    shown = subprocess.run(
        [helm.program("helm"), "show", "chart", package], capture_output=True, text=True
    )
    assert shown.returncode == 0, shown.stderr
    assert f"version: {__version__}" in shown.stdout


def test_the_context_holds_what_the_dockerfile_copies() -> None:
    found = set(names(dist.image_context(MADE_AT)))
    assert {
        "Dockerfile",
        ".dockerignore",
        "pyproject.toml",
        "hatch_build.py",
        "requirements/image.txt",
        "core/caraway_core/releases/version.py",
        "console/package-lock.json",
        "docker/alive",
    } <= found
    assert not [name for name in found if name.startswith(("tests/", "docs/", "bench/", ".git/"))]


@pytest.mark.parametrize("part", [dist.chart, dist.image_context])
def test_archives_are_equal_twice_and_name_no_user(part: dist.Part) -> None:
    packed = part(MADE_AT)
    assert packed == part(MADE_AT)
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        for entry in tar:
            assert (entry.mtime, entry.uid, entry.uname) == (MADE_AT, 0, "")
            assert entry.mode in (0o644, 0o755)


def test_checksums_cover_every_file_but_themselves(tmp_path: Path) -> None:
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts" / "b.tgz").write_bytes(b"b")
    (tmp_path / "a.whl").write_bytes(b"a")
    (tmp_path / "SHA256SUMS").write_text("old")
    assert dist.checksums(tmp_path).splitlines() == [
        f"{hashlib.sha256(b'a').hexdigest()}  a.whl",
        f"{hashlib.sha256(b'b').hexdigest()}  charts/b.tgz",
    ]
