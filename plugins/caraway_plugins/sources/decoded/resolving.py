"""Finds the files of a dataset that are decoded, and the columns of its table."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.loading import registry
from caraway_core.sqltext import identifiers
from caraway_plugins.sources import file_columns, formats, partitions, schemas
from caraway_plugins.sources.decoded import declared, decoders
from caraway_plugins.sources.decoded.decoders import Decoder
from caraway_plugins.sources.decoded.table import DecodedTable, PlacedFile
from caraway_plugins.sources.listing import FileListing
from caraway_plugins.sources.params import Params
from caraway_plugins.sources.storage import FoundFile, Storage

_READERS = 16


def format_of(listing: FileListing, params: Params) -> str | None:
    """Return the format that decodes the files of a listing, or None: the engine reads them.

    Without `file_format` the names decide. A folder of data may also have documents about them, so
    those are read if the path names one, or a pattern of them.
    """
    asked = params.text("file_format")
    if asked is not None:
        return asked.lower() if asked.lower() in declared.SUFFIXES else None
    guesses = {_guess(each.path) for each in listing.files}
    of_data = guesses - declared.DOCUMENTS - {None}
    if of_data:
        guess = of_data.pop()
        return guess if not of_data and guess in declared.SUFFIXES else None
    guess = guesses.pop()
    is_named = not listing.is_folder or bool(listing.suffix)
    return guess if is_named and not guesses else None


def _guess(path: str) -> str | None:
    return declared.format_of(path) or formats.guessed(path)


def resolve(
    storage: Storage,
    listing: FileListing,
    format_: str,
    params: Params,
    columns: Sequence[pa.Field],
    timeout_s: float,
) -> DecodedTable:
    """Return the table of the files, with the types that the dataset declares.

    Raises:
        DatasetError: there are no such files, one is damaged, or their columns conflict.
    """
    if params.text("file_compression_type") not in (None, "none", "uncompressed"):
        raise DatasetError(
            "unsupported", f"{format_} files are not compressed as a whole; decompress them"
        )
    is_normalized = params.flag("normalize_names", False)
    found_files = _select(storage, listing, format_, params)
    files = tuple(_placed(each, listing, params, is_normalized) for each in found_files)
    if file_columns.are_wanted(params):
        files = tuple(
            PlacedFile(each.found, (*each.partition, *file_columns.values(storage, each.found)))
            for each in files
        )
    decoder = decoders.of(format_, is_normalized=is_normalized)
    own = _columns(storage, decoder, format_, found_files)
    keys = partitions.columns((each.partition for each in files), columns)
    names = frozenset(field.name for field in keys)
    if twice := names.intersection(own.names):
        raise DatasetError(
            "schema",
            f"{sorted(twice)} is both a column of the files and a partition folder; rename one, or "
            "set hive_partitioning_enabled: false",
        )
    by_file = [field for field in columns if field.name not in names]
    if format_ in declared.DOCUMENTS:
        _refuse_unknown(by_file, own)
    schema = pa.schema([*schemas.overridden(own, by_file), *keys])
    return DecodedTable(schema, format_, files, names, is_normalized, storage.store, timeout_s)


def _placed(
    file: FoundFile, listing: FileListing, params: Params, is_normalized: bool
) -> PlacedFile:
    if not params.flag("hive_partitioning_enabled", True):
        return PlacedFile(file)
    values = partitions.values_of(file.path[len(listing.root) :])
    if is_normalized:
        names = identifiers.normalized([key for key, _ in values])
        values = tuple((name, text) for name, (_, text) in zip(names, values, strict=True))
    return PlacedFile(file, values)


def _select(
    storage: Storage, listing: FileListing, format_: str, params: Params
) -> Sequence[FoundFile]:
    ending = "." + (params.text("file_extension") or "").lstrip(".")
    files: Sequence[FoundFile] = listing.files
    if ending != ".":
        files = [each for each in files if each.path.endswith(ending)]
    elif listing.is_folder or params.text("file_format") is None:
        files = [each for each in files if declared.format_of(each.path) == format_]
    if not files:
        ends = ending if ending != "." else " or ".join(sorted(declared.SUFFIXES[format_]))
        raise DatasetError(
            "not_found",
            f"no file in '{storage.title(listing.root)}' ends in {ends}; set file_extension if "
            "they end in another one",
        )
    return files


def _columns(
    storage: Storage, decoder: Decoder, format_: str, files: Sequence[FoundFile]
) -> pa.Schema:
    if format_ in declared.DOCUMENTS:
        return decoder.schema(storage, files[0])
    with ThreadPoolExecutor(_READERS, "source") as pool:
        found = list(pool.map(lambda each: decoder.schema(storage, each), files))
    named = [
        schemas.NamedSchema(storage.title(each.path), schema)
        for each, schema in zip(files, found, strict=True)
    ]
    return schemas.finished(schemas.merge(named, text_on_conflict=False))


def _refuse_unknown(columns: Sequence[pa.Field], own: pa.Schema) -> None:
    for field in columns:
        if field.name not in own.names:
            raise DatasetError(
                "schema",
                registry.unknown("column of documents", field.name, dict.fromkeys(own.names, "")),
            )
