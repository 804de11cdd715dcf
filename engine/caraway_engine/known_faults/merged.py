"""Qualifies columns of USING and NATURAL in WHERE and ON, which DataFusion 55 calls ambiguous.

For the engine, `t JOIN u USING (k) WHERE k = 1` is an error, although `k` is one column. The column
is qualified with its table, and the statement is planned again.
"""

from collections.abc import Iterator

from caraway_core.errors import InvalidQueryError
from caraway_engine.errors import engine_messages
from caraway_engine.known_faults import joining, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.joining import JoinedRelation
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_KEEPS_LEFT = frozenset({"Join", "Inner", "Left", "LeftOuter"})
_KEEPS_RIGHT = frozenset({"Right", "RightOuter"})
_LEFT_ONLY = frozenset({"Semi", "Anti", "LeftSemi", "LeftAnti"})
_RIGHT_ONLY = frozenset({"RightSemi", "RightAnti"})


def is_error(exc: BaseException) -> bool:
    """Return whether the engine may have failed because of a column of USING."""
    return engine_messages.AMBIGUOUS.find(exc) is not None


def qualified(sql: str, types: Types) -> str | None:
    """Qualify the columns of USING in a statement, or return None if it has none."""
    try:
        statements = syntax.parse(sql)
    except syntax.SyntaxUnknownError:
        return None
    changed = [_qualify(each, types) for one in statements for each in scopes.scopes(one)]
    return ";".join(map(syntax.restored, statements)) if any(changed) else None


class _Visible:
    """The columns that an unqualified name may refer to, as joins are read from the left."""

    def __init__(self) -> None:
        self._columns: dict[str, list[Tree]] = {}
        self._merged: set[str] = set()

    def add(self, relation: JoinedRelation) -> None:
        """Add the columns of a relation."""
        for name in relation.columns:
            self._columns.setdefault(name, []).append(relation.column(name))

    def add_all(self, other: "_Visible") -> None:
        """Add the columns of another FROM item."""
        for name, columns in other._columns.items():
            self._columns.setdefault(name, []).extend(columns)
        self._merged |= other._merged

    def join(self, relation: JoinedRelation, join: Tree) -> None:
        """Add a joined relation, and merge the columns that the join compares by name."""
        kind = syntax.kind(join["join_operator"])
        if kind in _LEFT_ONLY:
            return
        if kind in _RIGHT_ONLY:
            self._columns, self._merged = {}, set()
            self.add(relation)
            return
        shared = self._shared(relation, join)
        before = {name: self._columns[name] for name in shared}
        self.add(relation)
        for name, columns in before.items():
            self._columns[name] = [_value(kind, columns, relation.column(name))]
            self._merged.add(name)

    def _shared(self, relation: JoinedRelation, join: Tree) -> list[str]:
        operator = join["join_operator"]
        if not isinstance(operator, dict) or not joining.is_by_name(syntax.body(operator)):
            return []
        if syntax.body(operator) == "Natural":
            return [name for name in relation.columns if name in self._columns]
        return [syntax.spelled(each[-1]["Identifier"]) for each in syntax.body(operator)["Using"]]

    def qualify(self, condition: Tree) -> bool:
        """Qualify the merged columns of a condition; return whether there are any."""
        found = [
            (each, self._columns[name])
            for each in syntax.inside(condition)
            if syntax.kind(each) == "Identifier"
            and (name := syntax.spelled(each["Identifier"])) in self._merged
            and len(self._columns[name]) == 1
        ]
        for each, (column,) in found:
            syntax.replace(each, syntax.copied(column))
        return bool(found)


def _value(kind: str, left: list[Tree], right: Tree) -> Tree:
    if kind in _KEEPS_RIGHT:
        return right
    if kind in _KEEPS_LEFT:
        return left[0]
    return syntax.filled("coalesce(__a, __b)", a=left[0], b=right)


def _qualify(scope: SelectScope, types: Types) -> bool:
    if not any(_is_by_name(join) for join in scope.joins()):
        return False
    try:
        return any(list(_changes(scope, types)))
    except (InvalidQueryError, KeyError):
        return False  # The columns of a relation are unknown; keep the engine's own error.


def _is_by_name(join: Tree) -> bool:
    operator = join["join_operator"]
    return isinstance(operator, dict) and joining.is_by_name(syntax.body(operator))


def _changes(scope: SelectScope, types: Types) -> Iterator[bool]:
    everywhere = _Visible()
    for from_ in scope.select["from"]:
        visible = _Visible()
        visible.add(joining.relation_of(from_["relation"], scope, types))
        for join in from_["joins"]:
            visible.join(joining.relation_of(join["relation"], scope, types), join)
            yield visible.qualify(scopes.on(join))
        everywhere.add_all(visible)
    yield everywhere.qualify(scope.select["selection"])
