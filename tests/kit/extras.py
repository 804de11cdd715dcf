"""The packages that `pip install 'caraway[EXTRA]'` installs, read from `pyproject.toml`."""

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

PYPROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
EXTRAS: dict[str, list[str]] = PYPROJECT["project"]["optional-dependencies"]
FOR_DEVELOPERS = {"bench", "dev"}


@functools.cache
def brought(extra: str) -> frozenset[str]:
    """Return the packages that an extra, or "" for none, installs in an empty environment."""
    found: set[tuple[str, str]] = set()
    waiting = [("caraway", ""), ("caraway", extra)]
    while waiting:
        package, of = waiting.pop()
        if (package, of) in found:
            continue
        found.add((package, of))
        for needed in _requirements(package, of):
            if needed.marker is None or needed.marker.evaluate({"extra": of}):
                waiting += [(_name(needed.name), each) for each in {"", *needed.extras}]
    return frozenset(package for package, _ in found)


def absent_modules(extra: str) -> set[str]:
    """Return the top-level modules that are installed here and that the extra does not bring."""
    packages = brought(extra)
    return {
        module
        for module, owners in _owners().items()
        if not any(_name(owner) in packages for owner in owners)
    }


@functools.cache
def _requirements(package: str, extra: str) -> Sequence[Requirement]:
    if package == "caraway":
        texts = EXTRAS[extra] if extra else PYPROJECT["project"]["dependencies"]
    else:
        texts = _declared(package)
    return [Requirement(text) for text in texts]


def _declared(package: str) -> Sequence[str]:
    try:
        return metadata.distribution(package).requires or []
    except metadata.PackageNotFoundError:
        return []  # For another platform or version of Python.


@functools.cache
def _name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@functools.cache
def _owners() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()
