"""What a file name says about its format and compression."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from caraway_core import registry
from caraway_core.errors import DatasetError
from caraway_core.tables import Compression, FileFormat
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
    """How one file is to be read; files of one kind share the end of their names."""

    format: FileFormat
    is_tsv: bool
    suffix: str
    compression: Compression


def wanted(params: Params) -> str | None:
    """Return the format that the params ask for, if they do."""
    name = params.text("file_format")
    if name is not None and name.lower() not in _FORMATS:
        raise DatasetError(
            "invalid", registry.unknown("file format", name, dict.fromkeys(_FORMATS, ""))
        )
    return name.lower() if name else None


def guessed(path: str) -> str | None:
    """Return the format that a file name or a pattern stands for."""
    return _BY_SUFFIX.get(_suffixes(path)[0].lower())


def suffixes_of(format_name: str) -> frozenset[str]:
    return _FORMATS[format_name][1]


def same(left: str, right: str) -> bool:
    """Whether two format names are read by one reader in one way."""
    return _FORMATS[left][0] == _FORMATS[right][0] and (left == "tsv") == (right == "tsv")


def kind(path: str, format_name: str, params: Params) -> FileKind:
    """Say how a file is read.

    Raises:
        DatasetError: it is compressed in a way, or of a format, that is not read compressed.
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
            f"'{path}' is a {compression}-compressed {format_} file; only CSV and JSON files may "
            f"be compressed as a whole: unpack it",
        )
    return FileKind(format_, format_name == "tsv", base + packed, compression)


def _suffixes(path: str) -> tuple[str, str]:
    name = PurePosixPath(path)
    if name.suffix.lower() in _COMPRESSIONS:
        return PurePosixPath(name.stem).suffix, name.suffix
    return name.suffix, ""
