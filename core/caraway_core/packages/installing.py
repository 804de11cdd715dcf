"""Installs packages next to a manifest, which then depends on them."""

import os
import posixpath
import shutil
import tempfile
from pathlib import Path

from caraway_core import manifest as manifests
from caraway_core.errors import InvalidRequestError, ManifestError
from caraway_core.manifest.documents import document
from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.texts import places
from caraway_core.packages import paths
from caraway_core.packages.collecting import Package
from caraway_core.packages.sources import PackageSource


def name_of(source: PackageSource) -> str:
    """Return the name under which a package of a repository is installed."""
    folder = source.path
    if posixpath.splitext(folder)[1] in (".yaml", ".yml"):
        folder = posixpath.dirname(folder)
    name = f"{source.org}/{source.repository.removesuffix('.git')}"
    return f"{name}-{folder.replace('/', '-')}" if folder else name


def install(package: Package, name: str, manifest: Path, *, replaces: bool) -> str:
    """Write a package next to a manifest, and add it to its dependencies. Return what was added.

    Either both is done, or nothing.

    Raises:
        InvalidRequestError: it is installed, or the manifest does not load with it.
        ManifestError: the manifest does not load without it.
    """
    name = paths.inside("", name, "the name of the package")
    manifests.load(manifest)
    text = document.read_text(manifest)
    target = manifest.parent / places.INSTALLED / name
    if target.exists() and not replaces:
        raise InvalidRequestError(f"'{target}' exists; pass --force to replace it")
    is_found = package.manifest in places.MANIFEST_FILES
    dependency = name if is_found else f"{name}/{package.manifest}"
    changed = _with_dependency(text, manifest, dependency)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".caraway-") as kept:
        before, new = Path(kept) / "before", Path(kept) / "new"
        _write(package, new)
        if target.exists():
            target.rename(before)
        new.rename(target)
        try:
            _replace(manifest, changed)
            manifests.load(manifest)
        except (ManifestError, OSError) as exc:
            _replace(manifest, text)
            shutil.rmtree(target)
            if before.exists():
                before.rename(target)
            raise InvalidRequestError(f"the manifest cannot use the package:\n{exc}") from exc
    return dependency


def _write(package: Package, folder: Path) -> None:
    for name, content in package.files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _replace(file: Path, text: str) -> None:
    # A reader of the file sees the old or the new text, never a part of one.
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".caraway-")
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
        stream.write(text)
    shutil.copymode(file, name)
    os.replace(name, file)


def _with_dependency(text: str, manifest: Path, dependency: str) -> str:
    """Return the text of a manifest with one more dependency, and all else as it is."""
    content = document.parse(text, manifest)
    present = content.value.get("dependencies") or []
    if dependency in present:
        return text
    changed = _edited(text, content, dependency)
    try:
        found = document.parse(changed, manifest).value
    except ManifestError:
        found = {}
    if found != {**content.value, "dependencies": [*present, dependency]}:
        raise InvalidRequestError(
            f"'{manifest}' has dependencies in a form that is not edited here; write them as a "
            "list with one line for each, and try again"
        )
    return changed


def _edited(text: str, content: Document, dependency: str) -> str:
    ending = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += ending
    present = content.value.get("dependencies")
    if not present:
        if "dependencies" in content.value:
            del lines[content.line(("dependencies",)) - 1]
        return "".join([*lines, f"dependencies:{ending}", f"  - {dependency}{ending}"])
    line = content.line(("dependencies", len(present) - 1))
    last = lines[line - 1]
    indent = last[: len(last) - len(last.lstrip())]
    lines.insert(line, f"{indent}- {dependency}{ending}")
    return "".join(lines)
