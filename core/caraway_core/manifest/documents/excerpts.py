"""Shows what the files of a manifest say of one dataset or view, without secrets."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from caraway_core.errors import ManifestError
from caraway_core.manifest.documents import document
from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.texts import names

_SECTIONS = ("datasets", "views")
_HIDING = frozenset({"params", "env"})
"""The keys whose texts may be secrets."""
_REFERENCE = re.compile(r"\s*\$\{[^{}]*\}\s*")
_LOGIN = re.compile(r"//[^/@\s]+@")
_HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a manifest: the file, relative to that of the manifest, its line, and its YAML."""

    file: str
    line: int
    text: str


def find(files: Iterable[Path], base_dir: Path, name: str) -> Excerpt | None:
    """Return what the files say now of a dataset or view; None if they do not name it.

    Comments are left out. Values of `params` are hidden unless they are references to secrets.
    """
    for path in files:
        try:
            part = _part(document.read(path), name)
        except ManifestError:
            continue  # It may be no YAML file, or be written at this moment.
        if part is not None:
            text = yaml.dump(_shown(part.value), None, _Dumper, sort_keys=False, allow_unicode=True)
            return Excerpt(_relative(path, base_dir), part.root.line, text)
    return None


def _part(content: Document, name: str) -> Document | None:
    value = content.value
    for section in _SECTIONS:
        entries = value.get(section)
        for number, entry in enumerate(entries if isinstance(entries, list) else ()):
            if _name(entry) == name:
                return content.part(section, number)
    # A file to which a `ref` leads is one dataset.
    return content if "kind" not in value and _name(value) == name else None


def _name(entry: object) -> str | None:
    try:
        return names.canonical(str(entry["name"])) if isinstance(entry, dict) else None
    except (KeyError, ValueError):
        return None


def _shown(value: Any, *, hides: bool = False) -> object:
    if isinstance(value, dict):
        return {key: _shown(each, hides=hides or key in _HIDING) for key, each in value.items()}
    if isinstance(value, list):
        return [_shown(each, hides=hides) for each in value]
    if value is None or isinstance(value, bool):
        return value
    if hides:
        return value if _REFERENCE.fullmatch(str(value)) else _HIDDEN
    if isinstance(value, str):
        return _LOGIN.sub(f"//{_HIDDEN}@", value)
    # Numbers remember how they were written, and YAML can only write plain ones.
    return int(value) if isinstance(value, int) else float(value)


class _Dumper(yaml.SafeDumper):
    """Writes queries of several lines as they are."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)


_Dumper.add_representer(str, _text)


def _relative(path: Path, base_dir: Path) -> str:
    return str(path.relative_to(base_dir)) if path.is_relative_to(base_dir) else path.name
