"""Mends recursive common table expressions.

- With UNION, DataFusion 55 keeps a row only if the number of its group is larger than those of all
  rows before it. Rows such as (0, NULL, 2) and (0, 2, NULL) have the same hash. Then the second
  one gets a later number than the rows after it, and these are lost. A column that says which
  values are NULL makes the hashes differ.
- The types of the first part are those before CASE and set operations get a common type. What the
  engine plans last has other types, which is an error. The first part is cast to the types that it
  has in the end.
- A CTE that reads itself in a subquery of an expression is not recursive for the engine, which
  fails. Such a CTE is refused, as is one that reads itself twice.
"""

import copy
from collections.abc import Iterator, Sequence

import pyarrow as pa

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.syntax import Tree

_SUBQUERIES = ("Subquery", "InSubquery", "Exists")
_LEAST_COLUMNS = 3
"""With two columns, the hash of the first one is not taken over into that of the second one."""
_MARKED = (
    "WITH RECURSIVE {name}({columns}, __nulls) AS ("
    "SELECT {first}, {nulls} FROM ({left}) AS __part({columns}) UNION "
    "SELECT {columns}, {nulls} FROM ({right}) AS __part({columns})) SELECT {columns} FROM {name}"
)
_CAST = "SELECT {first} FROM ({left}) AS __part({columns})"
_READ = "SELECT * FROM (SELECT {columns} FROM {name}) AS {name}"
_NAMES = {
    pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INT", pa.int64(): "BIGINT",
    pa.uint64(): "BIGINT UNSIGNED", pa.float32(): "REAL", pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR", pa.string_view(): "VARCHAR", pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP(6)", pa.timestamp("ns"): "TIMESTAMP",
}  # fmt: skip


def may_apply(words: str) -> bool:
    """Return whether a statement in lower case may have recursive CTEs."""
    return "recursive" in words


def mend(statement: Tree, types: Types) -> bool:
    """Rewrite the recursive CTEs of a statement; return whether any was.

    Raises:
        InvalidQueryError: one reads itself more than once, or in a subquery of an expression.
    """
    found = list(_recursive(statement))
    for cte, _ in found:
        _check(cte)
    changed = [_mend(cte, with_, types) for cte, with_ in found]
    return any(changed)


def _recursive(statement: Tree) -> Iterator[tuple[Tree, Tree]]:
    """Yield the CTEs that read themselves, with the CTEs in scope."""
    for query, with_ in scopes.set_queries(statement):
        cte = with_["cte_tables"][-1] if with_ else None
        if cte is None or cte["query"] is not query or "SetOperation" not in query["body"]:
            continue
        name = syntax.spelled(cte["alias"]["name"])
        if with_["recursive"] and name in scopes.read(query["body"]["SetOperation"]["right"]):
            yield cte, with_


def _check(cte: Tree) -> None:
    name = syntax.spelled(cte["alias"]["name"])
    part = cte["query"]["body"]["SetOperation"]["right"]
    count = list(scopes.read(part)).count(name)
    if count > 1:
        raise InvalidQueryError(
            f"the recursive CTE '{name}' reads itself {count} times, and the engine supports one; "
            "read it once, and carry what the other reads need in its columns"
        )
    subqueries = (each for each in syntax.everything(part) if syntax.kind(each) in _SUBQUERIES)
    if any(name in scopes.read(each) for each in subqueries):
        raise InvalidQueryError(
            f"the recursive CTE '{name}' reads itself in a subquery of an expression, which the "
            f"engine does not support; join '{name}' in FROM"
        )


def _mend(cte: Tree, with_: Tree, types: Types) -> bool:
    query, operation = cte["query"], cte["query"]["body"]["SetOperation"]
    first = syntax.query(operation["left"])
    schema, final = types.first_schema(first, with_), types.schema(first, with_)
    if schema is None or final is None:
        return False
    listed = cte["alias"]["columns"]
    names = [_quoted(syntax.spelled(each["name"])) for each in listed] or [
        _quoted(name) for name in schema.names
    ]
    casts = _casts(names, schema, final)
    is_distinct = operation["set_quantifier"] not in ("All", "AllByName")
    if len(names) != len(schema) or not (casts or (is_distinct and len(names) >= _LEAST_COLUMNS)):
        return False
    columns = ", ".join(names)
    parts = {"columns": columns, "first": ", ".join(casts or names), "left": _text(first)}
    if not is_distinct or len(names) < _LEAST_COLUMNS:
        (made,) = syntax.parse(_CAST.format(**parts))
        operation["left"] = made["Query"]["body"]
        return True
    name = syntax.text({"Identifier": cte["alias"]["name"]})
    _read_without_mark(operation["right"], syntax.spelled(cte["alias"]["name"]), name, columns)
    nulls = ", ".join(f"{each} IS NULL" for each in names)
    right = _text(syntax.query(operation["right"]))
    (made,) = syntax.parse(
        _MARKED.format(name=name, nulls=f"concat({nulls})", right=right, **parts)
    )
    inner = made["Query"]["with"]["cte_tables"][0]["query"]
    operation.update(inner["body"]["SetOperation"])
    made["Query"]["with"]["cte_tables"][0]["query"] = copy.copy(query)
    syntax.replace(query, made["Query"])
    cte["alias"]["columns"] = []
    return True


def _casts(names: Sequence[str], before: pa.Schema, after: pa.Schema) -> list[str]:
    """Return the columns, cast to the types that they have in the end; empty if they have them."""
    if before.types == after.types or len(names) != len(before):
        return []
    return [
        name if own == other or not (type_ := _name(other)) else f"CAST({name} AS {type_})"
        for name, own, other in zip(names, before.types, after.types, strict=True)
    ]


def _name(type_: pa.DataType) -> str:
    if pa.types.is_decimal128(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    return _NAMES.get(type_, "")


def _read_without_mark(tree: Tree, own: str, name: str, columns: str) -> None:
    """Hide the mark from what reads the CTE within itself, such as `*`."""
    for each in list(syntax.everything(tree)):
        table = each.get("Table")
        if not isinstance(table, dict) or len(table["name"]) != 1:
            continue
        (last,) = table["name"]
        if "Identifier" not in last or syntax.spelled(last["Identifier"]) != own:
            continue
        (made,) = syntax.parse(_READ.format(columns=columns, name=name))
        derived = made["Query"]["body"]["Select"]["from"][0]["relation"]
        if table["alias"]:
            derived["Derived"]["alias"] = table["alias"]
        syntax.replace(each, derived)


def _text(query: Tree) -> str:
    return syntax.restored({"Query": query})


def _quoted(name: str) -> str:
    return syntax.text({"Identifier": syntax.identifier(name)})
