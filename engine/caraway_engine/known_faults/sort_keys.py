"""Wraps sort keys in functions, without changing the columns that they name.

A name in ORDER BY is an output column first, for the engine also inside expressions. So a key is
never replaced with what its name stands for. It stays inside the function, and a position becomes
the name of its output column.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import joining, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_ORDERED = re.compile(r"\border\b", re.IGNORECASE)
_DIRECTION = r"(?:\s+(?:asc|desc))?(?:\s+nulls\s+(?:first|last))?"
_BY_NAMES = re.compile(
    rf"(?s:.*)\border\s+by\s+(\w+{_DIRECTION}(?:\s*,\s*\w+{_DIRECTION})*)"
    r"\s*(?:(?:limit|offset)\s+\d+\s*)*;?\s*",
    re.IGNORECASE,
)
NameOf = Callable[[Tree], str | None]
"""Returns the name that the engine gives to an item of a SELECT."""


@dataclass(frozen=True, slots=True)
class WrappedSortKey:
    """A key of ORDER BY: its place in the statement, its type, and a name for its column.

    `value` is the expression that it sorts by, unless that is not known.
    """

    place: Tree
    type_: pa.DataType | None
    value: Tree
    name: Callable[[], Tree | None]

    def wrap(self, text: str) -> bool:
        """Put the key into a function with a place `__a`; return whether that is possible."""
        named = self.name()
        if named is not None:
            syntax.replace(self.place, syntax.filled(text, a=named))
        return named is not None


def keys(scope: SelectScope, types: Types, name_of: NameOf) -> Iterator[WrappedSortKey]:
    """Yield the keys by which the rows of a SELECT are sorted."""
    for key in scope.sort_keys():
        place = key["expr"]
        number = syntax.position(place)
        item = place if number is None else _item(scope, types, number)
        if item is None:
            continue
        value = _value(item)
        (type_,) = types.types_of(scope, [value])
        yield WrappedSortKey(place, type_, value, _namer(item, place, number, name_of))


def _namer(
    item: Tree, place: Tree, number: int | None, name_of: NameOf
) -> Callable[[], Tree | None]:
    def name() -> Tree | None:
        # A copy, because the key is replaced with what contains it.
        return dict(place) if number is None else _named(item, name_of)

    return name


def _item(scope: SelectScope, types: Types, number: int) -> Tree | None:
    """Return the item of a SELECT at a position, which may be a column of `*`."""
    items: list[Tree] = []
    for item in scope.select["projection"]:
        if "Wildcard" not in item and "QualifiedWildcard" not in item:
            items.append(item)
        elif number > len(items):
            try:
                columns = joining.written_out(scope, types, item)
            except InvalidQueryError:
                return None
            items += [{"UnnamedExpr": column} for column in columns]
    return items[number - 1] if 0 < number <= len(items) else None


def _value(item: Tree) -> Tree:
    if "ExprWithAlias" in item:
        return item["ExprWithAlias"]["expr"]
    return item.get("UnnamedExpr", item)


def _named(item: Tree, name_of: NameOf) -> Tree | None:
    """Return a reference to an output column, which gets its own name as an alias if needed."""
    value = item.get("UnnamedExpr")
    if value is not None and syntax.kind(value) in ("Identifier", "CompoundIdentifier"):
        return syntax.copied(value)
    if value is not None:
        name = name_of(item)
        if name is None:
            return None
        syntax.replace(item, scopes.named(value, name))
    return {"Identifier": item["ExprWithAlias"]["alias"]}


def of_sets(statement: Tree, types: Types) -> Iterator[tuple[Tree, WrappedSortKey]]:
    """Yield the keys by which the rows of set operations are sorted, with their queries."""
    for query, with_ in scopes.set_queries(statement):
        if not query["order_by"]:
            continue
        unsorted = {**query, "order_by": None, "limit_clause": None, "fetch": None}
        schema = types.schema(unsorted, with_)
        if schema is None:
            continue
        for key in query["order_by"]["kind"].get("Expressions", ()):
            if (wrapped_sort_key := _of_schema(key["expr"], schema)) is not None:
                yield query, wrapped_sort_key


def _of_schema(place: Tree, schema: pa.Schema) -> WrappedSortKey | None:
    """Return a key that names one output column; the engine refuses nearly all others."""
    number = syntax.position(place)
    if number is not None and 0 < number <= len(schema.names):
        name = schema.names[number - 1]
    elif syntax.kind(place) == "Identifier":
        name = syntax.spelled(place["Identifier"])
    else:
        return None
    if schema.names.count(name) != 1:
        return None
    column = {"Identifier": syntax.identifier(name)}
    return WrappedSortKey(place, schema.field(name).type, column, lambda: column)


def may_be_floats(words: str, columns: pa.Schema) -> bool:
    """Return whether a statement may sort by floats, without parsing it.

    It does not if it is one SELECT that sorts by other output columns.
    """
    orders = len(_ORDERED.findall(words))
    match = _BY_NAMES.fullmatch(words) if orders == 1 else None
    if match is None or words.lower().count("select") != 1:
        return bool(orders)
    fields = {field.name.lower(): field.type for field in columns}
    for key in match[1].split(","):
        name = key.split()[0].lower()
        type_ = fields.get(name)
        place = syntax.whole(name) or 0
        if 0 < place <= len(columns):
            type_ = columns.field(place - 1).type
        if type_ is None or not _is_simple(type_):
            return True
    return False


def _is_simple(type_: pa.DataType) -> bool:
    return not (pa.types.is_floating(type_) or pa.types.is_nested(type_))
