"""Builds the files of a release: `make dist`, or `python -m tools.dist FOLDER`.

    caraway-VERSION-py3-none-any.whl, caraway-VERSION.tar.gz    the wheel and the source
    charts/caraway-VERSION.tgz                            the chart, named as by `helm package`
    caraway-VERSION-image.tar.gz                                a context for `docker build -`
    caraway-VERSION.cdx.json                                    the bill of materials
    SHA256SUMS                                                  for `sha256sum --check`

Two builds of one commit have the same bytes: times are that of the commit, and owners and modes are
fixed.
"""

import argparse
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

from caraway_core.releases.version import __version__
from tools import sbom

ROOT = Path(__file__).parents[1]
CHART = "charts/caraway"
Part = Callable[[int], bytes]


def tracked(*folders: str) -> list[str]:
    """Return the files below these folders that git tracks, sorted."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--", *folders], cwd=ROOT, check=True, capture_output=True
    )
    return sorted(name for name in listing.stdout.decode().split("\0") if name)


def commit_time() -> int:
    """Return the time of the commit in seconds."""
    log = ["git", "log", "-1", "--format=%ct"]
    return int(subprocess.run(log, cwd=ROOT, check=True, capture_output=True).stdout)


def archive(names: Iterable[str], folder: str, prefix: str, made_at: int) -> bytes:
    """Return files of the checkout as a .tar.gz; `folder` becomes `prefix` in their names."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=made_at, filename="") as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(names):
            path = ROOT / name
            entry = tarfile.TarInfo(prefix + name.removeprefix(folder))
            entry.size, entry.mtime = path.stat().st_size, made_at
            entry.mode = 0o755 if os.access(path, os.X_OK) else 0o644
            with path.open("rb") as content:
                tar.addfile(entry, content)
    return packed.getvalue()


def chart(made_at: int) -> bytes:
    """Return the packaged chart."""
    return archive(tracked(CHART), CHART, "caraway", made_at)


def image_context(made_at: int) -> bytes:
    """Return what the Dockerfile copies, as a context for `docker build -`."""
    rules = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [rule.removeprefix("!") for rule in rules if rule.startswith("!")]
    names = {*tracked(*copied), "Dockerfile", ".dockerignore"}
    return archive(names, "", "", made_at)


def build(folder: Path) -> None:
    """Build all files of a release into an empty folder."""
    made_at = commit_time()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "charts").mkdir(parents=True)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        env=os.environ | {"SOURCE_DATE_EPOCH": str(made_at)},
        check=True,
    )
    (folder / "charts" / f"caraway-{__version__}.tgz").write_bytes(chart(made_at))
    (folder / f"caraway-{__version__}-image.tar.gz").write_bytes(image_context(made_at))
    (folder / f"caraway-{__version__}.cdx.json").write_text(sbom.rendered(made_at))
    (folder / "SHA256SUMS").write_text(checksums(folder))


def checksums(folder: Path) -> str:
    """Return a line for each file of a folder, as `sha256sum` writes it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n"
        for path in files
        if path.name != "SHA256SUMS"
    )


def main() -> None:
    """Build a release into the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist")
    folder = parser.parse_args().folder.resolve()
    build(folder)
    sys.stdout.write((folder / "SHA256SUMS").read_text())


if __name__ == "__main__":
    main()
