"""YAML files as trees that record the line of every key and value.

The tree is built from parser events rather than by PyYAML's composer: that one recurses once for
each level of nesting, in C, so a hostile file could end the process. Aliases share their subtree,
and what they stand for is counted as if it were written out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from caraway_core.errors import ManifestError, Problem
from caraway_core.manifest.texts import scalars

MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_VALUES = 200_000
MAX_DEPTH = 64

Location = tuple[str | int, ...]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAGS = "tag:yaml.org,2002:"


@dataclass(slots=True)
class DocumentNode:
    """A value, the line it starts on, and its children with the lines of their keys."""

    value: Any  # what YAML holds: scalars, lists and mappings of them
    line: int
    children: dict[str | int, tuple[int, "DocumentNode"]] = field(default_factory=dict)
    size: int = 1


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML file, or the part of it below `prefix`."""

    path: Path
    root: DocumentNode
    prefix: Location = ()

    @property
    def value(self) -> Any:
        """The plain value; its type is what the check against a shape finds out."""
        return self.root.value

    def part(self, *steps: str | int) -> "Document":
        """Return the part below the steps, which must exist."""
        node = self.root
        for step in steps:
            node = node.children[step][1]
        return Document(self.path, node, self.prefix + steps)

    def line(self, location: Location) -> int:
        """Return the line of the key or item at the location, or of its nearest parent."""
        node, line = self.root, self.root.line
        for step in location:
            if step not in node.children:
                return line
            line, node = node.children[step]
        return line

    def problem(self, location: Location, message: str) -> Problem:
        """Word a problem with the value at the location."""
        return Problem(str(self.path), self.line(location), dotted(self.prefix + location), message)


def dotted(location: Location) -> str:
    """Write a location the way people do: `datasets[0].acceleration.engine`."""
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        ManifestError: it is missing, too large, unreadable or not UTF-8.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or str(exc)
        raise _broken(path, 0, f"cannot be read: {reason}; check the path") from exc
    if len(content) > MAX_FILE_BYTES:
        raise _broken(path, 0, "is larger than 4 MiB; split it with 'ref' or 'dependencies'")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = content.count(b"\n", 0, exc.start) + 1
        raise _broken(path, line, "is not UTF-8 text; save it as UTF-8") from exc


def read(path: Path) -> Document:
    """Read a YAML file that holds one mapping.

    Raises:
        ManifestError: it cannot be read, is not YAML, or is not a mapping.
    """
    return parse(read_text(path), path)


def parse(text: str, path: Path) -> Document:
    """Read the text of a YAML file that holds one mapping; the path is for messages.

    Raises:
        ManifestError: it is not YAML, or is not a mapping.
    """
    builder = _Builder(path)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take_event(event)
    except yaml.YAMLError as exc:
        problem = _syntax_problem(path, exc)
        raise ManifestError([*builder.problems, problem]) from exc
    return builder.document()


def _broken(path: Path, line: int, message: str) -> ManifestError:
    return ManifestError([Problem(str(path), line, "", message)])


def _syntax_problem(path: Path, exc: yaml.YAMLError) -> Problem:
    # The parser's own text quotes the file, which may hold a password: only its reason is used.
    mark = getattr(exc, "problem_mark", None)
    reason = getattr(exc, "problem", None) or getattr(exc, "reason", None) or "cannot be parsed"
    return Problem(str(path), mark.line + 1 if mark else 0, "", f"is not valid YAML: {reason}")


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not been read yet."""

    node: DocumentNode
    anchor: str | None
    key: str | None = None
    key_line: int = 0


class _Builder:
    """Turns parser events into a tree; problems that do not stop the parsing are gathered."""

    def __init__(self, path: Path) -> None:
        self.problems: list[Problem] = []
        self._path = path
        self._open: list[_Open] = []
        self._anchors: dict[str, DocumentNode | None] = {}
        self._root: DocumentNode | None = None
        self._documents = 0

    def take_event(self, event: Any) -> None:
        line = event.start_mark.line + 1
        match event:
            case yaml.DocumentStartEvent():
                self._start_document(line)
            case yaml.ScalarEvent():
                self._scalar(event, line)
            case yaml.AliasEvent():
                self._alias(event.anchor, line)
            case yaml.MappingStartEvent():
                self._start(DocumentNode({}, line), event.anchor)
            case yaml.SequenceStartEvent():
                self._start(DocumentNode([], line), event.anchor)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end()

    def document(self) -> Document:
        if self._root is None or self._root.value is None:
            self._add(0, "is empty; it needs at least a 'name'")
        elif not isinstance(self._root.value, dict):
            self._add(self._root.line, "must be a mapping of keys to values")
        if self.problems or self._root is None:
            raise ManifestError(self.problems)
        return Document(self._path, self._root)

    def _add(self, line: int, message: str, location: Sequence[str | int] = ()) -> None:
        self.problems.append(Problem(str(self._path), line, dotted(tuple(location)), message))

    def _stop(self, line: int, message: str) -> ManifestError:
        self._add(line, message, self._location())
        return ManifestError(self.problems)

    def _location(self) -> list[str | int]:
        return [
            entry.key if entry.key is not None else len(entry.node.value)
            for entry in self._open
            if entry.key is not None or isinstance(entry.node.value, list)
        ]

    def _start_document(self, line: int) -> None:
        self._documents += 1
        if self._documents > 1:
            raise self._stop(line, "a second document starts here ('---'); a file holds one")

    def _scalar(self, event: Any, line: int) -> None:
        node = DocumentNode(self._scalar_value(event, line), line)
        if self._is_key_wanted():
            self._key(event.value, line)
        else:
            self._attach(node)
        self._keep(event.anchor, node)

    def _scalar_value(self, event: Any, line: int) -> scalars.Scalar:
        if event.tag in (None, "!") or event.tag == _TAGS + "str":
            is_plain = event.tag is None and event.implicit[0]
            return scalars.resolve(event.value) if is_plain else str(event.value)
        if event.tag.removeprefix(_TAGS) in ("bool", "int", "float", "null"):
            return scalars.resolve(event.value)
        self._add(line, f"the tag '{event.tag}' is not supported", self._location())
        return str(event.value)

    def _alias(self, anchor: str | None, line: int) -> None:
        node = self._anchors.get(anchor or "")
        if node is None:
            raise self._stop(line, f"the alias '*{anchor}' stands for nothing yet, or for itself")
        if self._is_key_wanted():
            raise self._stop(line, f"the alias '*{anchor}' cannot be a key")
        self._attach(node, line)

    def _start(self, node: DocumentNode, anchor: str | None) -> None:
        if self._is_key_wanted():
            raise self._stop(node.line, "a key must be a plain text")
        if len(self._open) >= MAX_DEPTH:
            raise self._stop(node.line, f"is nested more than {MAX_DEPTH} levels deep")
        if anchor is not None:
            self._anchors[anchor] = None
        self._open.append(_Open(node, anchor))

    def _end(self) -> None:
        closed = self._open.pop()
        self._attach(closed.node)
        self._keep(closed.anchor, closed.node)

    def _keep(self, anchor: str | None, node: DocumentNode) -> None:
        if anchor is not None:
            self._anchors[anchor] = node

    def _is_key_wanted(self) -> bool:
        return (
            bool(self._open)
            and isinstance(self._open[-1].node.value, dict)
            and self._open[-1].key is None
        )

    def _key(self, key: str, line: int) -> None:
        parent = self._open[-1]
        if key in parent.node.children:
            first = parent.node.children[key][0]
            where = [*self._location(), key]
            self._add(line, f"the key '{key}' is given twice, first on line {first}", where)
        parent.key, parent.key_line = key, line

    def _attach(self, node: DocumentNode, line: int | None = None) -> None:
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        self._grow(parent.node, node)
        if parent.key is not None:
            parent.node.value[parent.key] = node.value
            parent.node.children[parent.key] = (parent.key_line, node)
            parent.key = None
        else:
            parent.node.children[len(parent.node.value)] = (line or node.line, node)
            parent.node.value.append(node.value)

    def _grow(self, parent: DocumentNode, node: DocumentNode) -> None:
        parent.size += node.size
        if parent.size > MAX_VALUES:
            raise self._stop(
                node.line, f"holds more than {MAX_VALUES} values once its aliases are written out"
            )
