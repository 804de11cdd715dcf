"""Combines inspected files into one table: a common schema, and as few scans as possible."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.tables import FileScan, FilesTable, ranges, structs
from caraway_plugins.sources import file_columns, partitions, schemas, shapes
from caraway_plugins.sources.formats import FileKind
from caraway_plugins.sources.listing import FileListing
from caraway_plugins.sources.params import Params
from caraway_plugins.sources.shapes import FileShape
from caraway_plugins.sources.storage import Storage

# The engine lists folders of JSON arrays only with this suffix, and only without partitions.
_ARRAY_SUFFIX = ".json"


_FILE_COLUMN = file_columns.FIELDS[0].name


@dataclass(frozen=True, slots=True)
class _Group:
    """The properties that files must share to be read by one scan."""

    kind: FileKind
    is_json_array: bool
    schema: pa.Schema
    names: tuple[str, ...]
    partition: partitions.Values | None


def assemble(
    storage: Storage,
    listing: FileListing,
    files: Sequence[FileShape],
    params: Params,
    declared: Sequence[pa.Field],
) -> FilesTable:
    """Build the table.

    Raises:
        DatasetError: the files have no columns, or their columns conflict.
    """
    files = [_named(file, declared, params) for file in files]
    partition_columns = partitions.columns((file.partition for file in files), declared)
    keys = {field.name for field in partition_columns}
    by_file = [field for field in declared if field.name not in keys]
    named = [schemas.NamedSchema(file.title, file.schema) for file in files]
    is_text = files[0].kind.format in ("csv", "json")
    columns = schemas.overridden(schemas.finished(schemas.merge(named, is_text)), by_file)
    if is_parquet := files[0].kind.format == "parquet":
        columns = schemas.viewed(columns)
    if not columns.names and not keys:
        raise DatasetError(
            "schema", f"'{files[0].title}' holds no columns; declare them under `columns`"
        )
    _refuse_clash(files, keys)
    columns = pa.schema([field for field in columns if field.name not in keys])
    groups = _grouped(storage, listing, files, columns)
    by_name = {field.name: field for field in partition_columns}
    scans = tuple(_scan(storage, listing, *each, params, by_name) for each in groups)
    typed = schemas.viewed(pa.schema(partition_columns)) if is_parquet else partition_columns
    found = ranges.together(file.ranges for file in files)
    known = tuple((name, found[name]) for name in columns.names if name in found)
    schema = pa.schema([*columns, *(typed if keys else ())])
    return FilesTable(schema, scans, _row_count(files), ranges=known)


def _row_count(files: Sequence[FileShape]) -> int | None:
    counts = [file.row_count for file in files if file.row_count is not None]
    return sum(counts) if len(counts) == len(files) else None


def _named(file: FileShape, declared: Sequence[pa.Field], params: Params) -> FileShape:
    """Apply the declared column names to a file without a header."""
    if file.kind.format != "csv" or not declared or not len(file.schema):
        return file
    if shapes.dialect(params, file.kind).has_header:
        return file
    keys = {key for key, _ in file.partition}
    names = [field.name for field in declared if field.name not in keys]
    if len(names) != len(file.schema):
        raise DatasetError(
            "schema",
            f"'{file.title}' has {len(file.schema)} columns and no header; `columns` declares "
            f"{len(names)}",
        )
    types = [field.type for field in file.schema]
    return replace(file, schema=pa.schema([*zip(names, types, strict=True)]))


def _refuse_clash(files: Sequence[FileShape], keys: set[str]) -> None:
    # Other formats are read by name, and omit a column that is also a partition folder.
    for file in files:
        if file.kind.format == "csv" and (twice := keys.intersection(file.schema.names)):
            raise DatasetError(
                "schema",
                f"{sorted(twice)} is both a column of '{file.title}' and a partition folder; "
                f"rename one, or set hive_partitioning_enabled: false",
            )


def _grouped(
    storage: Storage, listing: FileListing, files: Sequence[FileShape], columns: pa.Schema
) -> list[tuple[_Group, list[FileShape]]]:
    """Group files that one scan can read; split by partition folders only where necessary."""
    whole = _by_group(files, columns, is_split=False)
    chosen: list[tuple[_Group, list[FileShape]]] = []
    for group, members in whole:
        if storage.has_folders and _is_folder(listing, group, members, files):
            chosen.append((group, members))
        else:
            chosen.extend(_by_group(members, columns, is_split=True))
    return chosen


def _by_group(
    files: Sequence[FileShape], columns: pa.Schema, is_split: bool
) -> list[tuple[_Group, list[FileShape]]]:
    groups: list[tuple[_Group, list[FileShape]]] = []
    places: dict[object, int] = {}
    for file in files:
        schema = _physical(file, columns)
        partition = file.partition if is_split else None
        names = () if file.kind.format == "csv" else _table_names(file, schema)
        group = _Group(file.kind, file.is_json_array, schema, names, partition)
        key = (file.kind, file.is_json_array, tuple(schema), names, partition)
        if key not in places:
            places[key] = len(groups)
            groups.append((group, []))
        groups[places[key]][1].append(file)
    return groups


def _table_names(file: FileShape, physical: pa.Schema) -> tuple[str, ...]:
    """Return the names in the table of the columns that the engine reads from a file."""
    names = {own: name for name, own in file.own_names.items()}
    renamed = tuple(names.get(name, name) for name in physical.names)
    return () if renamed == tuple(physical.names) else renamed


def _physical(file: FileShape, columns: pa.Schema) -> pa.Schema:
    """Return the schema that the engine needs to read a file, with the names in the file."""
    schema = _read_as(file, columns)
    if file.kind.format == "csv" or not file.own_names:
        return schema
    own = file.own_names
    return pa.schema([field.with_name(own.get(field.name, field.name)) for field in schema])


def _read_as(file: FileShape, columns: pa.Schema) -> pa.Schema:
    wanted = {field.name: field for field in columns}
    match file.kind.format:
        case "csv" if len(file.schema):
            # CSV fields are read by position, so the schema lists all of them in file order.
            return pa.schema([wanted[name] for name in file.schema.names])
        case "arrow":
            return file.schema  # The reader neither casts nor looks columns up by name.
        case "json":
            own = {field.name: field for field in schemas.finished(file.schema)}
            seen = {field.name: field.type for field in file.schema}
            return pa.schema([
                own[field.name] if _keeps_own(seen.get(field.name), field.type) else field
                for field in columns
            ])  # fmt: skip
        case _:
            return columns


def _keeps_own(own: pa.DataType | None, wanted: pa.DataType) -> bool:
    """Return whether a column keeps its own type and is cast after reading.

    The JSON reader does not read numbers and booleans as text.
    """
    return wanted == pa.string() and own in (pa.int64(), pa.float64(), pa.bool_())


def _is_folder(
    listing: FileListing, group: _Group, members: Sequence[FileShape], files: Sequence[FileShape]
) -> bool:
    """Return whether the engine would find exactly these files by listing the folder."""
    suffix = group.kind.suffix
    # A file added later may spell the names differently.
    if not listing.is_folder or not suffix or any(file.own_names for file in members):
        return False
    if any(key == _FILE_COLUMN for key, _ in members[0].partition):
        return False
    chosen = {file.found.path for file in members}
    listed = {each.path for each in (*listing.files, *listing.hidden)}
    if any(path.endswith(suffix) and path not in chosen for path in listed):
        return False
    if group.is_json_array and not suffix.startswith(_ARRAY_SUFFIX):
        return False
    keys = {tuple(key for key, _ in file.partition) for file in files}
    roots = len(listing.root)
    in_order = all(partitions.leads(file.found.path[roots:]) for file in members)
    has_null = any(value is None for file in members for _, value in file.partition)
    return (
        len(keys) == 1
        and (keys == {()} or (in_order and not has_null))
        and _is_by_name(group, has_partitions=keys != {()})
    )


def _is_by_name(group: _Group, has_partitions: bool) -> bool:
    # A CSV file added later may order its columns differently, and an Arrow file may have different
    # columns. Both are read as listed, until the listing is seen to have changed.
    if group.kind.format in ("csv", "arrow"):
        return has_partitions
    return not (group.is_json_array and has_partitions)


def _scan(
    storage: Storage,
    listing: FileListing,
    group: _Group,
    members: Sequence[FileShape],
    params: Params,
    partition_columns: dict[str, pa.Field],
) -> FileScan:
    is_folder = group.partition is None
    paths = [listing.root] if is_folder else [file.found.path for file in members]
    keys = [key for key, _ in members[0].partition]
    values = None if group.partition is None else tuple(value for _, value in group.partition)
    return FileScan(
        format=group.kind.format,
        paths=tuple(storage.location(path) for path in paths),
        schema=group.schema,
        extension=group.kind.suffix,
        compression=group.kind.compression,
        csv=shapes.dialect(params, group.kind) if group.kind.format == "csv" else None,
        json_array=group.is_json_array,
        partition_columns=tuple(partition_columns[key] for key in keys),
        partition_values=values if keys else None,
        store=storage.store,
        size_bytes=sum(file.found.size_bytes for file in members),
        file_count=len(members),
        column_bytes=_column_bytes(group.names or group.schema.names, members),
        names=group.names,
        is_unmasked=_is_unmasked(group, members),
    )


def _is_unmasked(group: _Group, members: Sequence[FileShape]) -> bool:
    """Return whether fields of NULL structs may hold values in files."""
    fields = [field for file in members for field in file.schema]
    match group.kind.format:
        case "arrow":
            return any(structs.has_structs(each.type) for each in fields)
        case "parquet":
            return any(map(structs.has_required, fields))
        case _:
            return False


def _column_bytes(names: Sequence[str], members: Sequence[FileShape]) -> tuple[int, ...]:
    if not all(file.column_bytes for file in members):
        return ()
    counter = Counter[str]()
    for file in members:
        counter.update(file.column_bytes)
    return tuple(counter[name] for name in names)
