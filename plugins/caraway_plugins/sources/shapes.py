"""Selects the files of a listing to read, and inspects each of them."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.sqltext import identifiers
from caraway_core.tables import CsvDialect
from caraway_core.tables.ranges import ColumnRange
from caraway_plugins.sources import (
    binary_shape,
    csv_shape,
    formats,
    json_shape,
    params,
    partitions,
    samples,
)
from caraway_plugins.sources.formats import FileKind
from caraway_plugins.sources.listing import FileListing
from caraway_plugins.sources.params import Params
from caraway_plugins.sources.storage import FoundFile, Storage

_READERS = 16
_RANGED = 64
"""The most files of which ranges of columns are looked at."""
_SAMPLES_BYTES = 256 * 2**20
_SMALLEST_SAMPLE_BYTES = 64 * 2**10
# Numbers that do not fit, after the sample, are an error in CSV. In JSON the engine silently
# truncates fractions, so a larger sample is inspected.
_SAMPLE_BYTES = {"csv": 2**20, "json": 16 * 2**20}


@dataclass(frozen=True, slots=True)
class FileShape:
    """A file and its columns; the type is `null` for columns without any value.

    `column_bytes` has the size of each column, `ranges` those of some, and `row_count` is the
    number of rows, if the file says. `own_names` has the name in the
    file of each column, and in the path of each key, that has another name in the table.
    """

    found: FoundFile
    title: str
    kind: FileKind
    schema: pa.Schema
    partition: partitions.Values
    is_json_array: bool = False
    column_bytes: Mapping[str, int] = field(default_factory=dict)
    row_count: int | None = None
    ranges: Mapping[str, ColumnRange] = field(default_factory=dict)
    own_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Reading:
    storage: Storage
    params: Params
    sample_bytes: int
    root: str
    is_partitioned: bool
    is_normalized: bool
    declared: Sequence[str]


def read(
    storage: Storage,
    listing: FileListing,
    params_: Params,
    declared: Sequence[pa.Field] = (),
) -> list[FileShape]:
    """Inspect every file that the listing and the params select.

    Raises:
        DatasetError: no file is selected, or a file cannot be read.
    """
    chosen = select(storage, listing, params_)
    reading = _Reading(
        storage,
        params_,
        max(_SMALLEST_SAMPLE_BYTES, _SAMPLES_BYTES // len(chosen)),
        listing.root,
        params_.flag("hive_partitioning_enabled", True),
        params_.flag("normalize_names", False),
        [each.name for each in declared],
    )
    with ThreadPoolExecutor(_READERS, "source") as pool:
        step = -(-len(chosen) // _RANGED)
        with_ranges = (number % step == 0 for number in range(len(chosen)))
        return list(pool.map(partial(_shape, reading), *zip(*chosen, strict=True), with_ranges))


def dialect(params_: Params, kind: FileKind) -> CsvDialect:
    """Return the CSV dialect for a file of this kind."""
    return params.dialect(params_, kind.is_tsv)


def select(
    storage: Storage, listing: FileListing, params_: Params
) -> list[tuple[FoundFile, FileKind]]:
    """Select files by format and extension, and return how each is read."""
    ending = "." + (params_.text("file_extension") or "").lstrip(".")
    files = [each for each in listing.files if ending == "." or each.path.endswith(ending)]
    wanted = formats.wanted(params_)
    name = wanted or _common_format(storage, listing, files)
    if ending == "." and (listing.is_folder or not wanted):
        files = [
            each
            for each in files
            if (guess := formats.guessed(each.path)) and formats.same(guess, name)
        ]
    if not files:
        ends = ending if ending != "." else " or ".join(sorted(formats.suffixes_of(name)))
        where = storage.title(listing.root)
        raise DatasetError(
            "not_found",
            f"no file in '{where}' ends in {ends}; set file_extension if they end in another one",
        )
    return [(each, formats.kind(each.path, name, params_)) for each in files]


def _common_format(storage: Storage, listing: FileListing, files: Sequence[FoundFile]) -> str:
    guesses = sorted({guess for each in files if (guess := formats.guessed(each.path))})
    where = storage.title(files[0].path if len(files) == 1 else listing.root)
    if not guesses:
        raise DatasetError(
            "invalid", f"the format of the files in '{where}' is unknown; set params.file_format"
        )
    if not all(formats.same(guesses[0], guess) for guess in guesses):
        raise DatasetError(
            "invalid",
            f"'{where}' contains files of several formats ({', '.join(guesses)}); set "
            f"params.file_format to the one to read",
        )
    return guesses[0]


def _shape(reading: _Reading, file: FoundFile, kind: FileKind, with_ranges: bool) -> FileShape:
    shape = _own_shape(reading, file, kind, with_ranges)
    return _normalized(shape) if reading.is_normalized else shape


def _normalized(shape: FileShape) -> FileShape:
    """Return a file with names that need no quotes."""
    own, keys = shape.schema.names, [key for key, _ in shape.partition]
    names, key_names = identifiers.normalized(own), identifiers.normalized(keys)
    partition = tuple(
        (name, value) for name, (_, value) in zip(key_names, shape.partition, strict=True)
    )
    pairs = zip((*names, *key_names), (*own, *keys), strict=True)
    renamed = dict(zip(own, names, strict=True))
    sizes = {renamed[name]: size for name, size in shape.column_bytes.items() if name in renamed}
    ranges = {renamed[name]: each for name, each in shape.ranges.items() if name in renamed}
    return replace(
        shape,
        schema=pa.schema([*zip(names, shape.schema.types, strict=True)]),
        partition=partition,
        column_bytes=sizes,
        ranges=ranges,
        own_names={name: before for name, before in pairs if name != before},
    )


def _own_shape(reading: _Reading, file: FoundFile, kind: FileKind, with_ranges: bool) -> FileShape:
    storage, title = reading.storage, reading.storage.title(file.path)
    relative = file.path[len(reading.root) :]
    partition = partitions.values_of(relative) if reading.is_partitioned else ()
    if kind.format not in _SAMPLE_BYTES:
        columns = binary_shape.read(storage, file, kind.format, with_ranges=with_ranges)
        sizes = dict(zip(columns.schema.names, columns.sizes, strict=False))
        return FileShape(
            file,
            title,
            kind,
            columns.schema,
            partition,
            column_bytes=sizes,
            row_count=columns.row_count,
            ranges=columns.ranges,
        )
    limit = min(reading.sample_bytes, _SAMPLE_BYTES[kind.format])
    sample = samples.head(storage, file, kind.compression, limit)
    if kind.format == "csv":
        prefixes = ("tsv_", "csv_", "") if kind.is_tsv else ("csv_", "")
        most = reading.params.count(*(f"{each}schema_infer_max_records" for each in prefixes))
        form = dialect(reading.params, kind)
        # Without a header, declared columns are those of the same positions.
        numbered = [f"column_{number}" for number, _ in enumerate(reading.declared, start=1)]
        schema = csv_shape.infer(
            sample,
            form,
            most,
            title,
            is_normalized=reading.is_normalized,
            declared=reading.declared if form.has_header else numbered,
        )
        return FileShape(file, title, kind, schema, partition)
    most = reading.params.count("schema_infer_max_records")
    shape = json_shape.infer(sample, _json_form(reading.params), most, title)
    return FileShape(file, title, kind, shape.schema, partition, shape.is_array)


def _json_form(params_: Params) -> str:
    form = (params_.text("json_format") or "auto").lower()
    form = {"jsonl": "ndjson", "object": "ndjson"}.get(form, form)
    if form not in ("auto", "array", "ndjson"):
        raise DatasetError(
            "invalid", f"params.json_format is '{form}'; set it to auto, array or ndjson"
        )
    return form
