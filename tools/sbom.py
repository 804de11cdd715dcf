"""The bill of materials of a release, as CycloneDX 1.6, made from the lock files.

It lists the Python packages of the image and the npm packages whose code is in the console. The
Python lock says which package requires which; the npm lock says the licenses, too.
"""

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from caraway_core.releases.version import __version__

ROOT = Path(__file__).parents[1]
_PINNED = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?==(?P<version>[^\s;]+)")
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "caraway.dev")
_SELF = f"pkg:pypi/caraway@{__version__}"


@dataclass(frozen=True, slots=True)
class Component:
    """A package with its version; `required_by` are names of packages of the same lock."""

    purl: str
    name: str
    version: str
    license: str = ""
    required_by: list[str] = field(default_factory=list)


def python_packages(lock: str) -> Iterator[Component]:
    """Yield the packages of a lock file of Python."""
    package: Component | None = None
    for line in lock.splitlines():
        if (match := _PINNED.match(line)) is not None:
            name = re.sub(r"[-_.]+", "-", match["name"]).lower()
            purl = f"pkg:pypi/{name}@{match['version'].replace('+', '%2B')}"
            package = Component(purl, name, match["version"])
            yield package
        elif line.lstrip().startswith("#") and package is not None:
            requirer = line.lstrip().removeprefix("#").strip().removeprefix("via").strip()
            if requirer and not requirer.startswith(("-c ", "-r ")):
                package.required_by.append(requirer.split()[0].split("[")[0])


def npm_packages(lock: dict[str, Any]) -> Iterator[Component]:
    """Yield the packages of a lock file of npm that are not for developers."""
    for path, entry in lock["packages"].items():
        if not path or entry.get("dev") or entry.get("optional") or entry.get("link"):
            continue
        name = path.rpartition("node_modules/")[2]
        purl = f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}"
        yield Component(purl, name, entry["version"], entry.get("license", ""))


def document(python_lock: str, npm_lock: dict[str, Any], made_at: int) -> dict[str, Any]:
    """Return the bill of materials. Equal locks give an equal document; `made_at` is in seconds."""
    python = list(python_packages(python_lock))
    npm = {component.purl: component for component in npm_packages(npm_lock)}
    components = sorted([*python, *npm.values()], key=lambda component: component.purl)
    purls = {component.name: component.purl for component in python} | {"caraway": _SELF}
    required: dict[str, list[str]] = {_SELF: sorted(npm)}
    for component in python:
        for name in component.required_by:
            required.setdefault(purls[name], []).append(component.purl)
    content = "\n".join(component.purl for component in components)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, __version__ + content)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(made_at, UTC).isoformat(),
            "component": {
                "type": "application",
                "bom-ref": _SELF,
                "name": "caraway",
                "version": __version__,
                "purl": _SELF,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": [_written(component) for component in components],
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(set(required.get(ref, [])))}
            for ref in sorted([_SELF, *(component.purl for component in components)])
        ],
    }


def _written(component: Component) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": "library",
        "bom-ref": component.purl,
        "name": component.name,
        "version": component.version,
        "purl": component.purl,
    }
    if component.license:
        entry["licenses"] = [{"expression": component.license}]
    return entry


def rendered(made_at: int) -> str:
    """Return the bill of materials of this checkout as JSON."""
    python = (ROOT / "requirements" / "image.txt").read_text()
    npm = json.loads((ROOT / "console" / "package-lock.json").read_text())
    return json.dumps(document(python, npm, made_at), indent=1) + "\n"
