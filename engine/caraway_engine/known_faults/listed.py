"""Moves `unnest` from FROM into a subquery, because DataFusion 55 gives it no columns there.

`FROM t CROSS JOIN unnest(t.list) AS x(element)` becomes `FROM (SELECT t.*, unnest(t.list) AS
element FROM t) AS t`. Rows without elements have no row in both. Forms that are more than that, and
names that would mean two columns, stay an error.

A list in brackets that names columns of an outer query is an error, too, and the call that it
stands for is none.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from caraway_engine.known_faults import columns, scopes, syntax, texts
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_MAY_APPLY = re.compile(r"\bunnest\s*\(", re.IGNORECASE)
_MATCHED = ("Join", "Inner", "CrossJoin")


@dataclass(frozen=True, slots=True)
class _Elements:
    """The elements of a list in FROM, and the place where they stand."""

    relation: Tree
    siblings: list[Tree]
    place: Tree

    @property
    def value(self) -> Tree:
        return self.relation["array_exprs"][0]

    @property
    def alias(self) -> str:
        return syntax.spelled(self.relation["alias"]["name"])

    @property
    def column(self) -> str:
        given = self.relation["alias"]["columns"]
        return syntax.spelled(given[0]["name"]) if given else self.alias


def moved(sql: str, types: Types) -> str | None:
    """Rewrite a statement; None if it has no such list that can be moved."""
    if not _MAY_APPLY.search(sql):
        return None

    def change(statement: Tree) -> bool:
        changed = [_move(scope, types) for scope in scopes.scopes(statement)]
        return any(changed)

    return texts.rewritten(sql, types, change)


def called(sql: str, types: Types) -> str | None:
    """Write lists in brackets as calls, for which the engine finds outer columns; None if none."""
    return texts.rewritten(sql, types, _call) if "[" in sql else None


def _call(statement: Tree) -> bool:
    # Types such as `VARCHAR[]` are of this kind, too, and have no elements.
    arrays = [each for each in syntax.everything(statement) if syntax.kind(each) == "Array"]
    found = [each for each in arrays if "elem" in each["Array"]]
    for each in found:
        call = syntax.filled("make_array()")
        arguments = [{"Unnamed": {"Expr": item}} for item in each["Array"]["elem"]]
        call["Function"]["args"]["List"]["args"] = arguments
        syntax.replace(each, call)
    return bool(found)


def _move(scope: SelectScope, types: Types) -> bool:
    changed = [_moved(each, scope, types) for each in _lists(scope.select["from"])]
    return any(changed)


def _lists(from_: list[Tree]) -> list[_Elements]:
    """Return the lists that are joined without a condition."""
    found = []
    for item in from_:
        if "UNNEST" in item["relation"] and not item["joins"]:
            found.append(_Elements(item["relation"]["UNNEST"], from_, item))
        found += [
            _Elements(join["relation"]["UNNEST"], item["joins"], join)
            for join in item["joins"]
            if "UNNEST" in join["relation"] and _is_unconditional(join)
        ]
    return [each for each in found if _is_plain(each.relation)]


def _is_unconditional(join: Tree) -> bool:
    if syntax.kind(join["join_operator"]) not in _MATCHED:
        return False
    conditions = scopes.on(join)
    return all(syntax.text(each).lower() in ("true", "1 = 1") for each in conditions)


def _is_plain(relation: Tree) -> bool:
    alias = relation["alias"]
    has_more = relation["with_offset"] or relation["with_ordinality"]
    is_one = len(relation["array_exprs"]) == 1 and alias and len(alias["columns"]) <= 1
    return bool(is_one) and not has_more


def _moved(elements: _Elements, scope: SelectScope, types: Types) -> bool:
    from_ = scope.select["from"]
    used = [columns.spelling(each) for each in syntax.columns(elements.value)]
    tables = [each for each in _relations(from_) if "UNNEST" not in each]
    owners = [
        each
        for each in _kept(from_)
        if all(_name(each) in name[-2:-1] or (len(name) == 1 and len(tables) == 1) for name in used)
    ]
    if not used or len(owners) != 1 or not _has_place(scope, elements, owners[0], tables):
        return False
    (owner,) = owners
    held = types.columns(scope, [{"relation": owner, "joins": []}])
    (type_,) = types.types_of(scope, [elements.value])
    if held is None or elements.column in held or type_ is None or not _is_list(type_):
        return False
    _put(elements, scope, owner)
    return True


def _relations(from_: list[Tree]) -> list[Tree]:
    return [each["relation"] for item in from_ for each in (item, *item["joins"])]


def _kept(from_: list[Tree]) -> Iterator[Tree]:
    """Yield the tables and subqueries whose rows no outer join fills with NULL."""
    for item in from_:
        kinds = [syntax.kind(join["join_operator"]) for join in item["joins"]]
        if not any(kind.startswith(("Right", "Full")) for kind in kinds):
            matched = zip(item["joins"], kinds, strict=True)
            inner = [join["relation"] for join, kind in matched if kind in _MATCHED]
            yield from (each for each in (item["relation"], *inner) if _name(each) is not None)


def _name(relation: Tree) -> str | None:
    found = relation.get("Table") or relation.get("Derived")
    if found is None or (found["alias"] and found["alias"]["columns"]):
        return None
    if found["alias"]:
        return syntax.spelled(found["alias"]["name"])
    last = found["name"][-1] if "name" in found and not found["args"] else {}
    return syntax.spelled(last["Identifier"]) if "Identifier" in last else None


def _has_place(scope: SelectScope, elements: _Elements, owner: Tree, tables: list[Tree]) -> bool:
    """Return whether `*` in the SELECT can have the same columns after the change."""
    for item in scope.select["projection"]:
        of = _wildcard_of(item)
        has_others = of == _name(owner) and not _can_exclude(item["QualifiedWildcard"][1])
        if has_others or of == elements.alias or ("Wildcard" in item and len(tables) > 1):
            return False
    return True


def _wildcard_of(item: Tree) -> str | None:
    if "QualifiedWildcard" not in item:
        return None
    return syntax.spelled(item["QualifiedWildcard"][0]["ObjectName"][-1]["Identifier"])


def _can_exclude(options: Tree) -> bool:
    given = [each for key, each in options.items() if key.startswith("opt_") and each]
    return given == [] or (len(given) == 1 and "Multiple" in (options["opt_exclude"] or {}))


def _is_list(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_of_kind(type_) for is_of_kind in kinds)


def _put(elements: _Elements, scope: SelectScope, owner: Tree) -> None:
    """Make a subquery of the owner that has the elements as a column."""
    name = syntax.identifier(_name(owner) or "")
    (made,) = syntax.parse("SELECT * FROM (SELECT o.*, unnest(1) AS e FROM o) AS o")
    derived = made["Query"]["body"]["Select"]["from"][0]["relation"]
    select = derived["Derived"]["subquery"]["body"]["Select"]
    every, element = select["projection"]
    every["QualifiedWildcard"][0]["ObjectName"][0]["Identifier"] = name
    unnest = element["ExprWithAlias"]
    unnest["expr"] = syntax.with_argument(unnest["expr"], syntax.copied(elements.value))
    unnest["alias"] = syntax.identifier(elements.column)
    select["from"] = [{"relation": dict(owner), "joins": []}]
    derived["Derived"]["alias"]["name"] = name
    for item in scope.select["projection"]:
        if _wildcard_of(item) == _name(owner):
            options = item["QualifiedWildcard"][1]
            excluded = (options["opt_exclude"] or {"Multiple": []})["Multiple"]
            options["opt_exclude"] = {"Multiple": [*excluded, syntax.identifier(elements.column)]}
    column = [elements.alias, elements.column]
    elements.siblings.remove(elements.place)
    for each in list(syntax.everything([scope.select, scope.query["order_by"]])):
        if syntax.kind(each) == "CompoundIdentifier" and columns.spelling(each) == column:
            each["CompoundIdentifier"] = [name, syntax.identifier(elements.column)]
    syntax.replace(owner, derived)
