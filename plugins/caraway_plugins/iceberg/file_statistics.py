"""Statistics of Parquet files, from their footers, by field ids of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from caraway_plugins.iceberg import bounds, column_types
from caraway_plugins.iceberg.bounds import Pack
from caraway_plugins.iceberg.column_types import (
    IcebergField,
    IcebergSchema,
    ListType,
    MapType,
    NoIcebergTypeError,
    Path,
    StructType,
)

types = pa.types


@dataclass(slots=True)
class FileStatistics:
    """The rows of a file, and the sizes, counts and bounds of its columns by field id."""

    row_count: int
    split_offsets: list[int] = field(default_factory=list)
    column_sizes: dict[int, int] = field(default_factory=dict)
    value_counts: dict[int, int] = field(default_factory=dict)
    null_counts: dict[int, int] = field(default_factory=dict)
    lower: dict[int, bytes] = field(default_factory=dict)
    upper: dict[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column of Parquet that has bounds. `id` is that of its field in the table."""

    index: int
    id: int
    value: Callable[[Any], Any]
    pack: Pack


class FooterReader:
    """Reads the statistics of files of one table. `names` are names in files of columns."""

    def __init__(self, schema: IcebergSchema, names: Mapping[str, str] | None = None) -> None:
        own = names or {}
        self._by_name = {own.get(each.name, each.name): each for each in schema.fields}
        self._known: list[tuple[Any, list[_Leaf]]] = []

    def read(self, footer: pq.FileMetaData) -> FileStatistics:
        """Return the statistics of a file.

        Raises:
            NoIcebergTypeError: Iceberg cannot read a column of the file as that of the table.
        """
        statistics = FileStatistics(footer.num_rows)
        leaves = self._leaves(footer)
        groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
        statistics.split_offsets = sorted(_offset(group) for group in groups if group.num_columns)
        for leaf in leaves:
            _measure(statistics, leaf, [group.column(leaf.index) for group in groups])
        return statistics

    def _leaves(self, footer: pq.FileMetaData) -> list[_Leaf]:
        schema = footer.schema
        for known, leaves in self._known:
            if schema.equals(known):
                return leaves
        leaves = self._planned(footer)
        self._known.append((schema, leaves))
        return leaves

    def _planned(self, footer: pq.FileMetaData) -> list[_Leaf]:
        columns = footer.schema.to_arrow_schema()
        _check_ids(column_types.field_ids(columns), self._by_name)
        pairs = [each for column in columns for each in _matched(column, self._by_name)]
        if len(pairs) != footer.num_columns:
            return []  # Types of extensions may have other columns than they show.
        for index, (own, _) in enumerate(pairs):
            _check_moment(own, footer.schema.column(index))
        return [
            _Leaf(
                index,
                iceberg_field.id,
                bounds.ordered(own),
                bounds.packer(own, str(iceberg_field.type)),
            )
            for index, (own, iceberg_field) in enumerate(pairs)
            if iceberg_field is not None and not types.is_null(own)
        ]


_Pair = tuple[pa.DataType, IcebergField | None]
"""The type of a column of Parquet, and its field in the table; None where it needs no bounds."""


def _matched(column: pa.Field, fields: Mapping[str, IcebergField]) -> Iterator[_Pair]:
    iceberg_field = fields.get(column.name)
    yield from _pairs(column.name, column.type, iceberg_field)


def _pairs(name: str, own: pa.DataType, iceberg_field: IcebergField | None) -> Iterator[_Pair]:
    kind = None if iceberg_field is None else iceberg_field.type
    if types.is_struct(own):
        if kind is not None and not isinstance(kind, StructType):
            raise _unfit(name, own, iceberg_field)
        inner = (
            {each.name: each for each in iceberg_field.inner} if iceberg_field is not None else {}
        )
        for each in own:
            yield from _pairs(f"{name}.{each.name}", each.type, inner.get(each.name))
        return
    if types.is_map(own):
        if kind is not None and not isinstance(kind, MapType):
            raise _unfit(name, own, iceberg_field)
        parts: Iterable[pa.DataType] = (own.key_type, own.item_type)
        yield from _repeated(name, parts, iceberg_field)
        return
    if column_types.is_list(own):
        if kind is not None and not isinstance(kind, ListType):
            raise _unfit(name, own, iceberg_field)
        yield from _repeated(name, (own.value_type,), iceberg_field)
        return
    if iceberg_field is not None and not _is_readable(_plain(own), kind):
        raise _unfit(name, own, iceberg_field)
    yield _plain(own), iceberg_field


def _repeated(
    name: str, parts: Iterable[pa.DataType], iceberg_field: IcebergField | None
) -> Iterator[_Pair]:
    """Check the values of lists and maps. They have no bounds that readers use."""
    inner = iceberg_field.inner if iceberg_field is not None else (None,) * 2
    for part, each in zip(parts, inner, strict=False):
        yield from ((own, None) for own, _ in _pairs(name, part, each))


def _is_readable(own: pa.DataType, kind: object) -> bool:
    if isinstance(kind, str) and column_types.holds(kind, column_types.kind(own)):
        return True
    return types.is_null(own)  # type: ignore[no-any-return] # pyarrow has no types


def _unfit(name: str, own: pa.DataType, iceberg_field: IcebergField | None) -> NoIcebergTypeError:
    kind = (
        iceberg_field.type
        if iceberg_field is not None and isinstance(iceberg_field.type, str)
        else "nested"
    )
    return NoIcebergTypeError(f"column '{name}' is {own} in a file and {kind} in the table")


def _plain(own: pa.DataType) -> pa.DataType:
    return own.value_type if types.is_dictionary(own) else own


def _check_ids(own: Mapping[Path, int], fields: Mapping[str, IcebergField]) -> None:
    """Check that a file has no other ids than the table, since readers go by those of files."""
    for path, id_ in own.items():
        iceberg_field = fields.get(path[0])
        if len(path) == 1 and iceberg_field is not None and iceberg_field.id != id_:
            raise NoIcebergTypeError(f"column '{path[0]}' has different field ids in its files")


def _check_moment(own: pa.DataType, column: pq.ColumnSchema) -> None:
    """Check that moments are microseconds: the Java library reads other units as such.

    It knows those of 96 bits, which have no unit.
    """
    if types.is_timestamp(own) and own.unit != "us" and column.physical_type != "INT96":
        raise NoIcebergTypeError(
            f"column '{column.path}' is {own} in a file, which some engines read as microseconds"
        )


def _offset(group: pq.RowGroupMetaData) -> int:
    column = group.column(0)
    start = column.dictionary_page_offset
    return int(column.data_page_offset if start is None else min(start, column.data_page_offset))


def _measure(file_statistics: FileStatistics, leaf: _Leaf, chunks: list[Any]) -> None:
    """Add the sizes, counts and bounds of a column; bounds only where all row groups have them."""
    file_statistics.column_sizes[leaf.id] = sum(chunk.total_compressed_size for chunk in chunks)
    file_statistics.value_counts[leaf.id] = sum(chunk.num_values for chunk in chunks)
    nulls, lows, highs, is_bounded = 0, [], [], True
    for chunk in chunks:
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return
        nulls += statistics.null_count
        if statistics.has_min_max:
            lows.append(leaf.value(statistics.min_raw))
            highs.append(leaf.value(statistics.max_raw))
        elif statistics.null_count < chunk.num_values:
            is_bounded = False
    file_statistics.null_counts[leaf.id] = nulls
    if is_bounded and lows and None not in lows and None not in highs:
        low, high = leaf.pack(min(lows), False), leaf.pack(max(highs), True)
        if low is not None and high is not None:
            file_statistics.lower[leaf.id], file_statistics.upper[leaf.id] = low, high
