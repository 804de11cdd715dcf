"""Rewrites columns of USING.

DataFusion 55 always takes a column of USING from the left side. There it is NULL if a FULL or RIGHT
join found no left row.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_ANY_SIDE = "LEFT, RIGHT or FULL"
_KEEPS_RIGHT = {"FullOuter": "FULL", "RightOuter": "RIGHT", "Right": "RIGHT"}


@dataclass(frozen=True, slots=True)
class JoinedRelation:
    """A relation in FROM: its name and its columns."""

    name: str
    columns: list[str]

    def column(self, name: str) -> Tree:
        """Return a qualified reference to a column."""
        return {"CompoundIdentifier": [syntax.identifier(self.name), syntax.identifier(name)]}


def mend_using(scope: SelectScope, types: Types) -> bool:
    """Correct the columns of USING in FULL and RIGHT joins; return whether there were any.

    Raises:
        InvalidQueryError: the form of the relations is not supported.
    """
    is_changed = False
    for from_ in scope.select["from"]:
        _flatten(from_)
        for number, join in enumerate(from_["joins"]):
            if (side := _side_to_keep(join)) is not None:
                is_changed |= _mend_join(scope, types, from_, number, side)
        for relation in (from_["relation"], *(join["relation"] for join in from_["joins"])):
            if "NestedJoin" in relation:
                _check_nested(scope, relation["NestedJoin"])
    return is_changed


def _side_to_keep(join: Tree) -> str | None:
    """Return the side of a join by name whose keys the engine loses, or None."""
    operator = join["join_operator"]
    side = _KEEPS_RIGHT.get(syntax.kind(operator))
    return side if side and is_by_name(syntax.body(operator)) else None


def _flatten(from_: Tree) -> None:
    """Remove the parentheses around the first joins, which are evaluated first anyway."""
    while "NestedJoin" in from_["relation"] and not from_["relation"]["NestedJoin"]["alias"]:
        inner = from_["relation"]["NestedJoin"]["table_with_joins"]
        from_["relation"] = inner["relation"]
        from_["joins"] = [*inner["joins"], *from_["joins"]]


def _check_nested(scope: SelectScope, nested: Tree) -> None:
    """Refuse the columns of USING in joins in parentheses that cannot be flattened."""
    for from_ in froms([nested["table_with_joins"]]):
        for join in from_["joins"]:
            side = _side_to_keep(join)
            if side is None:
                continue
            constraint = syntax.body(join["join_operator"])
            names = None if constraint == "Natural" else _names_of_using(constraint)
            is_named = any(
                syntax.kind(each) == "Identifier"
                and (names is None or syntax.spelled(each["Identifier"]) in names)
                for each in scope.expressions()
            )
            has_wildcard = any("Wildcard" in item for item in scope.select["projection"])
            if is_named or has_wildcard or nested["alias"]:
                raise _refusal(side)


def is_by_name(constraint: Tree) -> bool:
    """Return whether a join compares the columns that have the same name on both sides."""
    return constraint == "Natural" or syntax.kind(constraint) == "Using"


def _mend_join(scope: SelectScope, types: Types, from_: Tree, number: int, side: str) -> bool:
    joins = from_["joins"]
    before = [from_["relation"], *(each["relation"] for each in joins[:number])]
    left = [relation_of(each, scope, types, side) for each in before]
    right = relation_of(joins[number]["relation"], scope, types, side)
    values: dict[str, Tree] = {}
    for name in _names(syntax.body(joins[number]["join_operator"]), left, right):
        owner = next((each for each in left if name in each.columns), None)
        if owner is None:
            raise _refusal(side)
        # In a RIGHT join, the right column is never missing. Both are named for their common type.
        first, second = (right, owner) if side == "RIGHT" else (owner, right)
        values[name] = syntax.filled(
            "coalesce(__a, __b)", a=first.column(name), b=second.column(name)
        )
    has_wildcard = any("Wildcard" in item for item in scope.select["projection"])
    if not has_wildcard and not any(_names_one(each, values) for each in scope.expressions()):
        return False
    others = [each for each in joins if _is_by_name_of(each)]
    is_alone = len(scope.select["from"]) == 1 and number + 1 == len(joins)
    if len(others) > 1 or (has_wildcard and not is_alone):
        raise _refusal(side)
    _expand(scope, left, right, values)
    _substitute(scope, values)
    return True


def shared_columns(scope: SelectScope, types: Types, join: Tree) -> list[Tree]:
    """Return the columns of both sides that a join by name compares.

    Raises:
        InvalidQueryError: the columns of a relation are not known.
    """
    operator = join["join_operator"]
    if not is_by_name(syntax.body(operator)):
        return []
    left = [relation_of(each, scope, types) for each in before(scope, join)]
    right = relation_of(join["relation"], scope, types)
    names = _names(syntax.body(operator), left, right)
    return [each.column(name) for each in (*left, right) for name in names if name in each.columns]


def before(scope: SelectScope, join: Tree) -> list[Tree]:
    """Return the relations to the left of a join."""
    for from_ in froms(scope.select["from"]):
        for number, each in enumerate(from_["joins"]):
            if each is join:
                before = [from_["relation"], *(one["relation"] for one in from_["joins"][:number])]
                return [table for one in before for table in tables(one)]
    return []


def froms(from_: list[Tree]) -> Iterator[Tree]:
    """Yield the chains of joins of a FROM, including those in parentheses."""
    for each in from_:
        yield each
        for relation in (each["relation"], *(join["relation"] for join in each["joins"])):
            if "NestedJoin" in relation:
                yield from froms([relation["NestedJoin"]["table_with_joins"]])


def tables(relation: Tree) -> Iterator[Tree]:
    """Yield a part of FROM, or the parts that it has in parentheses."""
    if "NestedJoin" not in relation:
        yield relation
        return
    inner = relation["NestedJoin"]["table_with_joins"]
    for each in (inner["relation"], *(join["relation"] for join in inner["joins"])):
        yield from tables(each)


def written_out(scope: SelectScope, types: Types, wildcard: Tree) -> list[Tree]:
    """Return the columns that a `*` stands for.

    Raises:
        InvalidQueryError: the columns of a relation are not known.
    """
    options = wildcard.get("Wildcard") or wildcard["QualifiedWildcard"][1]
    if any(options.get(key) for key in _WILDCARD_OPTIONS):
        raise _refusal(_ANY_SIDE)
    merged = {name for join in scope.joins() for name in _merged(scope, types, join)}
    whole = [each for from_ in scope.select["from"] for each in (
        from_["relation"], *(join["relation"] for join in from_["joins"])
    )]  # fmt: skip
    relations = [relation_of(each, scope, types) for one in whole for each in tables(one)]
    if "QualifiedWildcard" in wildcard:
        (name,) = wildcard["QualifiedWildcard"][0]["ObjectName"][-1:]
        relations = [each for each in relations if each.name == syntax.spelled(name["Identifier"])]
        merged = set()
    columns: list[Tree] = []
    seen: set[str] = set()
    for relation in relations:
        for name in relation.columns:
            if name not in merged or name not in seen:
                columns.append(relation.column(name))
            seen.add(name)
    return columns


def _merged(scope: SelectScope, types: Types, join: Tree) -> set[str]:
    if not isinstance(join["join_operator"], dict):
        return set()
    columns = shared_columns(scope, types, join)
    return {syntax.spelled(each["CompoundIdentifier"][-1]) for each in columns}


def _names_one(tree: Tree, values: dict[str, Tree]) -> bool:
    return syntax.kind(tree) == "Identifier" and syntax.spelled(tree["Identifier"]) in values


def _is_by_name_of(join: Tree) -> bool:
    operator = join["join_operator"]
    return syntax.kind(operator) != "" and is_by_name(syntax.body(operator))


def _names(constraint: Tree, left: list[JoinedRelation], right: JoinedRelation) -> list[str]:
    if constraint == "Natural":
        return [name for each in left for name in each.columns if name in right.columns]
    return _names_of_using(constraint)


def _names_of_using(constraint: Tree) -> list[str]:
    return [syntax.spelled(each[-1]["Identifier"]) for each in constraint["Using"]]


def relation_of(
    tree: Tree, scope: SelectScope, types: Types, side: str = _ANY_SIDE
) -> JoinedRelation:
    """Return a relation in FROM.

    Raises:
        InvalidQueryError: it has no name, or its columns are not known.
    """
    inner = tree.get("Table") or tree.get("Derived")
    columns = types.columns(scope, [{"relation": tree, "joins": []}])
    if inner is None or columns is None:
        raise _refusal(side)
    if inner["alias"]:
        return JoinedRelation(syntax.spelled(inner["alias"]["name"]), columns)
    if "name" not in inner or "Identifier" not in inner["name"][-1]:
        raise _refusal(side)
    return JoinedRelation(syntax.spelled(inner["name"][-1]["Identifier"]), columns)


def _expand(
    scope: SelectScope, left: list[JoinedRelation], right: JoinedRelation, values: dict[str, Tree]
) -> None:
    """Expand the columns of `*`: each column of USING once, in the position of the left one."""
    items: list[Tree] = []
    for item in scope.select["projection"]:
        if "Wildcard" not in item:
            items.append(item)
            continue
        if any(syntax.body(item).get(key) for key in _WILDCARD_OPTIONS):
            raise _refusal("FULL or RIGHT")
        for relation in (*left, right):
            for name in relation.columns:
                if name not in values:
                    items.append({"UnnamedExpr": relation.column(name)})
                elif relation is not right:
                    items.append(_aliased(values[name], name))
    scope.select["projection"] = items


_WILDCARD_OPTIONS = ("opt_ilike", "opt_exclude", "opt_except", "opt_replace", "opt_rename")


def _aliased(value: Tree, name: str) -> Tree:
    return {"ExprWithAlias": {"expr": value, "alias": syntax.identifier(name)}}


def _substitute(scope: SelectScope, values: dict[str, Tree]) -> None:
    shown: set[str] = set()
    for item in scope.select["projection"]:
        whole = item.get("UnnamedExpr")
        if whole and syntax.kind(whole) == "Identifier":
            name = syntax.spelled(whole["Identifier"])
            if name in values:
                shown.add(name)
                syntax.replace(item, _aliased(values[name], name))
        elif "ExprWithAlias" in item:
            shown.add(syntax.spelled(item["ExprWithAlias"]["alias"]))
    keys = ("projection", "selection", "having", "qualify", "group_by", "named_window")
    for each in syntax.inside([scope.select[key] for key in keys]):
        _put(each, values)
    # In ORDER BY, the name of an output column is that column.
    hidden = {name: value for name, value in values.items() if name not in shown}
    for each in syntax.inside(scope.query["order_by"]):
        _put(each, hidden)


def _put(tree: Tree, values: dict[str, Tree]) -> None:
    if _names_one(tree, values):
        syntax.replace(tree, values[syntax.spelled(tree["Identifier"])])


def _refusal(side: str) -> InvalidQueryError:
    return InvalidQueryError(
        f"{side} JOIN with USING or NATURAL is not supported with several joins or with these "
        "columns: the engine would lose keys of the right side; use ON a.k = b.k, and "
        "coalesce(a.k, b.k) instead of k"
    )


def conjuncts(condition: Tree) -> Iterator[Tree]:
    """Yield the terms that AND connects."""
    inner = syntax.unnested(condition)
    if syntax.kind(inner) == "BinaryOp" and inner["BinaryOp"]["op"] == "And":
        for side in ("left", "right"):
            yield from conjuncts(inner["BinaryOp"][side])
    elif inner is not None:
        yield inner
