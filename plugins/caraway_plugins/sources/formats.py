"""Derives the format and compression of a file from its name."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from caraway_core.errors import DatasetError
from caraway_core.loading import registry
from caraway_core.tables import Compression, FileFormat
from caraway_plugins.sources.decoded import declared
from caraway_plugins.sources.params import Params

_COMPRESSIONS: dict[str, Compression] = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".bz2": "bz2",
    ".xz": "xz",
    ".zst": "zstd",
    ".zstd": "zstd",
}
_COMPRESSION_NAMES: dict[str, Compression] = {
    **{suffix[1:]: compression for suffix, compression in _COMPRESSIONS.items()},
    "uncompressed": "",
    "none": "",
}
_FORMATS: dict[str, tuple[FileFormat, frozenset[str]]] = {
    "parquet": ("parquet", frozenset({".parquet", ".parq", ".pq"})),
    "csv": ("csv", frozenset({".csv"})),
    "tsv": ("csv", frozenset({".tsv", ".tab"})),
    "json": ("json", frozenset({".json", ".jsonl", ".ndjson"})),
    "jsonl": ("json", frozenset({".jsonl", ".ndjson", ".json"})),
    "ndjson": ("json", frozenset({".ndjson", ".jsonl", ".json"})),
    "arrow": ("arrow", frozenset({".arrow", ".ipc", ".feather"})),
    "ipc": ("arrow", frozenset({".arrow", ".ipc", ".feather"})),
    "feather": ("arrow", frozenset({".arrow", ".ipc", ".feather"})),
    "avro": ("avro", frozenset({".avro"})),
}
_BY_SUFFIX = {suffix: name for name in reversed(_FORMATS) for suffix in _FORMATS[name][1]}
_BY_SUFFIX |= {".json": "json", ".jsonl": "jsonl", ".ndjson": "ndjson"}
_COMPRESSIBLE = ("csv", "json")


@dataclass(frozen=True, slots=True)
class FileKind:
    """How a file is read; files of one kind have the same suffix."""

    format: FileFormat
    is_tsv: bool
    suffix: str
    compression: Compression


def wanted(params: Params) -> str | None:
    """Return the format that the params set, or None."""
    name = params.text("file_format")
    if name is not None and name.lower() not in _FORMATS:
        raise DatasetError(
            "invalid",
            registry.unknown("file format", name, (*_FORMATS, *declared.SUFFIXES, "snapshot")),
        )
    return name.lower() if name else None


def guessed(path: str) -> str | None:
    """Return the format for the suffix of a file name or a pattern, or None."""
    return _BY_SUFFIX.get(_suffixes(path)[0].lower())


def suffixes_of(format_name: str) -> frozenset[str]:
    """Return the suffixes of a format."""
    return _FORMATS[format_name][1]


def same(left: str, right: str) -> bool:
    """Return whether two format names are read in the same way."""
    return _FORMATS[left][0] == _FORMATS[right][0] and (left == "tsv") == (right == "tsv")


def kind(path: str, format_name: str, params: Params) -> FileKind:
    """Return how a file is read.

    Raises:
        DatasetError: the compression is unknown, or not supported for the format.
    """
    format_ = _FORMATS[format_name][0]
    base, packed = _suffixes(path)
    compression = _COMPRESSIONS.get(packed.lower(), "")
    asked = params.text("file_compression_type")
    if asked is not None:
        if asked.lower() not in _COMPRESSION_NAMES:
            known = dict.fromkeys(_COMPRESSION_NAMES, "")
            raise DatasetError("invalid", registry.unknown("file_compression_type", asked, known))
        compression = _COMPRESSION_NAMES[asked.lower()]
    if compression and format_ not in _COMPRESSIBLE:
        raise DatasetError(
            "unsupported",
            f"'{path}' is a {compression}-compressed {format_} file; only CSV and JSON files can "
            f"be compressed as a whole; decompress it",
        )
    return FileKind(format_, format_name == "tsv", base + packed, compression)


def _suffixes(path: str) -> tuple[str, str]:
    name = PurePosixPath(path)
    if name.suffix.lower() in _COMPRESSIONS:
        return PurePosixPath(name.stem).suffix, name.suffix
    return name.suffix, ""
