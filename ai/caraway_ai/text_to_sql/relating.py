"""Finds by names which columns of tables belong together: most tables declare no keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from caraway_ai.tools.data_access import KnownColumn, KnownTable
from caraway_core.ids import TableName

_KEY_ENDINGS = ("key", "id", "_code", "_no", "number", "uuid")
_LONGEST_PREFIX = 3


@dataclass(frozen=True, slots=True)
class TableRelation:
    """A column whose values are those of a column of another table, as far as names show."""

    column: str
    other: TableName
    other_column: str


@dataclass(frozen=True, slots=True)
class _Key:
    table: TableName
    column: str
    data_type: str
    is_primary: bool


def found(
    tables: Sequence[tuple[KnownTable, Sequence[KnownColumn]]],
) -> Mapping[TableName, Sequence[TableRelation]]:
    """Return the relations of each table, to tables in which the column is the key."""
    related: dict[TableName, list[TableRelation]] = {}
    keys = [key for table, columns in tables for key in _keys(table, columns)]
    for table, columns in tables:
        for column in columns:
            target = _target(table, column, keys)
            if target is not None:
                relation = TableRelation(column.name, target.table, target.column)
                related.setdefault(table.name, []).append(relation)
    return related


def _keys(table: KnownTable, columns: Sequence[KnownColumn]) -> Sequence[_Key]:
    """Return the columns that identify rows: the primary key, or the first column like one."""
    if len(table.primary_key) == 1:
        named = [each for each in columns if each.name == table.primary_key[0]]
    else:
        named = [each for each in columns[:1] if _is_like_key(each.name)]
    return [_Key(table.name, each.name, each.data_type, bool(table.primary_key)) for each in named]


def _target(table: KnownTable, column: KnownColumn, keys: Sequence[_Key]) -> _Key | None:
    if not _is_like_key(column.name):
        return None
    ranked = sorted(
        (
            (rank, not key.is_primary, key.table, key)
            for key in keys
            if key.table != table.name
            and key.data_type == column.data_type
            and (rank := _rank(column.name, key)) is not None
        ),
        key=lambda each: each[:3],
    )
    own = {key.column for key in keys if key.table == table.name}
    if column.name in own and not (ranked and ranked[0][0] == 0):
        return None
    return ranked[0][3] if ranked else None


def _rank(name: str, key: _Key) -> int | None:
    """Return how well a column fits a key, less is better; None where it does not."""
    bare = key.table.rpartition(".")[2].lower()
    own, other = name.lower(), key.column.lower()
    stems = {bare, bare.removesuffix("s"), bare.removesuffix("es"), bare.removesuffix("ies") + "y"}
    stems.discard("")  # A table may be called s.
    if other in ("id", "key", "uuid", "code", "no"):
        return 0 if own.removesuffix(other).rstrip("_") in stems else None
    plain_own, plain_other = without_prefix(own), without_prefix(other)
    if plain_own != plain_other:
        return None
    base = plain_other
    for ending in _KEY_ENDINGS:
        base = base.removesuffix(ending).rstrip("_")
    is_home = any(base and (stem.startswith(base) or base.startswith(stem)) for stem in stems)
    return 0 if is_home else None


def without_prefix(name: str) -> str:
    """Return a name without a prefix such as that of `o_custkey`."""
    prefix, mark, rest = name.partition("_")
    return rest if mark and len(prefix) <= _LONGEST_PREFIX and len(rest) > 2 else name


def _is_like_key(name: str) -> bool:
    lower = name.lower()
    return lower.endswith(_KEY_ENDINGS) or lower in ("id", "key", "code")
