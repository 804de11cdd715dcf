"""Manifests with one accelerated dataset."""

from caraway_core.manifest import Acceleration, Manifest


def dataset(keys: str, time_column: str = "\n    time_column: at", origin: str = "file:a") -> str:
    body = keys if keys.startswith("\n") else f" {{{keys}}}"
    return f"datasets:\n  - from: {origin}\n    name: t{time_column}\n    acceleration:{body}\n"


def accelerated(manifest: Manifest) -> Acceleration:
    (found,) = manifest.datasets
    assert found.acceleration_enabled and found.acceleration is not None
    return found.acceleration
