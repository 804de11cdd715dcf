"""Reads file scans in serialized physical plans, and restricts what they read.

The messages are DataFusion's `PhysicalPlanNode` and `FileScanExecConf` (datafusion-proto).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from caraway_core.pieces import FileRange
from caraway_engine.sharing import shares
from caraway_engine.statements import wire

_SCANS = {1: "parquet", 2: "csv", 20: "avro", 31: "json", 38: "arrow"}
_CONF = 1
_GROUP, _LIMIT, _STORE, _ORDERING = 1, 5, 8, 9
_KNOWN = frozenset({_GROUP, 2, 4, _LIMIT, 6, 7, _STORE, _ORDERING, 10, 11, 12, 13})
_FILE = 1
_PATH, _SIZE, _CHANGED, _RANGE, _STATISTICS = 1, 2, 3, 5, 6
_SMALL_BYTES = 1024 * 1024
"""Shares smaller than this are not worth splitting files for."""


class FilesChangedError(ValueError):
    """A file of a share is missing or has another size."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """The byte range `start` to `end` that a scan reads of a file; `rest` has the other fields."""

    path: str
    size_bytes: int
    start: int
    end: int
    is_whole: bool
    rest: bytes


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scan node, with the files of each of its partitions.

    If `is_bound`, files must stay in their partition and order, because the plan above relies on
    it.
    """

    message: bytes
    format: str
    groups: tuple[tuple[ReadFile, ...], ...]
    has_limit: bool
    is_bound: bool

    @property
    def paths(self) -> frozenset[str]:
        """The paths of all files that the scan reads."""
        return frozenset(file.path for group in self.groups for file in group)

    @property
    def is_splittable(self) -> bool:
        """True if partitions may read ranges of a file, as the engine itself split some."""
        return self.format == "parquet" or any(
            not file.is_whole for group in self.groups for file in group
        )


def read(message: bytes) -> Leaf:
    """Parse a serialized file scan.

    Raises:
        ValueError: it is not a file scan of a known kind.
    """
    (node,) = wire.fields(message)
    if node.tag not in _SCANS:
        raise ValueError(f"node {node.tag} of the plan is not a known file scan")
    conf = _conf(message, node)
    parts = list(wire.fields(message, conf.inside, conf.end))
    stores = [field.content(message).decode() for field in parts if field.tag == _STORE]
    groups = (
        tuple(
            _file(file.content(message), stores[0])
            for file in wire.fields(message, field.inside, field.end)
            if file.tag == _FILE
        )
        for field in parts
        if field.tag == _GROUP
    )
    tags = {field.tag for field in parts}
    return Leaf(
        message,
        _SCANS[node.tag],
        tuple(groups),
        has_limit=_LIMIT in tags,
        is_bound=_ORDERING in tags or not tags <= _KNOWN,
    )


def restricted(leaf: Leaf, pieces: Mapping[str, Sequence[FileRange]]) -> bytes:
    """Serialize the scan so that it reads only the pieces, in as many partitions as before.

    Raises:
        FilesChangedError: a file has changed since the pieces were made.
    """
    groups = [_intersected(group, pieces) for group in leaf.groups]
    if not leaf.is_bound:
        groups = _dealt([file for group in groups for file in group], leaf)
    return _with_groups(leaf.message, groups)


def made_file(path: str, size_bytes: int, changed_ns: int) -> ReadFile:
    """Return a whole file as a scan names it."""
    rest = wire.message(_PATH, path.encode()) + wire.number(_SIZE, size_bytes)
    return ReadFile(path, size_bytes, 0, size_bytes, True, rest + wire.number(_CHANGED, changed_ns))


def reading(leaf: Leaf, file: ReadFile) -> bytes:
    """Serialize the scan so that it reads one other file."""
    return _with_groups(leaf.message, [[file]])


def _conf(message: bytes, node: wire.Field) -> wire.Field:
    return next(f for f in wire.fields(message, node.inside, node.end) if f.tag == _CONF)


def _file(message: bytes, store: str) -> ReadFile:
    path, size, range_, rest = "", 0, None, []
    for field in wire.fields(message):
        if field.tag == _PATH:
            path = field.content(message).decode()
        if field.tag == _SIZE:
            size = field.number
        if field.tag == _RANGE:
            found = {f.tag: f.number for f in wire.fields(message, field.inside, field.end)}
            range_ = (found.get(1, 0), found.get(2, 0))
        elif field.tag != _STATISTICS:
            # The statistics are of the whole file, so drop them.
            rest.append(message[field.start : field.end])
    start, end = range_ or (0, size)
    return ReadFile(store + path, size, start, end, range_ is None, b"".join(rest))


def _intersected(
    group: Sequence[ReadFile], pieces: Mapping[str, Sequence[FileRange]]
) -> list[ReadFile]:
    found = []
    for file in group:
        for piece in pieces.get(file.path, ()):
            if piece.size_bytes != file.size_bytes:
                raise FilesChangedError(
                    f"'{file.path}' has {file.size_bytes} bytes, and had {piece.size_bytes} when "
                    "the query was planned"
                )
            start, end = max(file.start, piece.start), min(file.end, piece.end)
            if start < end:
                found.append(_ranged(file, start, end))
    return found


def _dealt(files: Sequence[ReadFile], leaf: Leaf) -> list[list[ReadFile]]:
    total = sum(file.end - file.start for file in files)
    can_split = leaf.is_splittable and total > _SMALL_BYTES
    listed = [
        shares.ListedPiece(f"{index:09}", file.end - file.start, can_split)
        for index, file in enumerate(files)
    ]
    groups = []
    for share in shares.divide_files(listed, len(leaf.groups)):
        group = []
        for piece in share:
            assert isinstance(piece, FileRange)
            file = files[int(piece.path)]
            group.append(_ranged(file, file.start + piece.start, file.start + piece.end))
        groups.append(group)
    return groups


def _ranged(file: ReadFile, start: int, end: int) -> ReadFile:
    is_whole = (start, end) == (0, file.size_bytes)
    return ReadFile(file.path, file.size_bytes, start, end, is_whole, file.rest)


def _with_groups(message: bytes, groups: Sequence[Sequence[ReadFile]]) -> bytes:
    (node,) = wire.fields(message)
    conf = _conf(message, node)
    parts = [wire.message(_GROUP, b"".join(map(_written, group))) for group in groups]
    for field in wire.fields(message, conf.inside, conf.end):
        if field.tag != _GROUP:
            parts.append(message[field.start : field.end])
    scan = wire.message(_CONF, b"".join(parts))
    others = message[node.inside : conf.start] + scan + message[conf.end : node.end]
    return wire.message(node.tag, others)


def _written(file: ReadFile) -> bytes:
    if file.is_whole:
        return wire.message(_FILE, file.rest)
    range_ = wire.number(1, file.start) + wire.number(2, file.end)
    return wire.message(_FILE, file.rest + wire.message(_RANGE, range_))
