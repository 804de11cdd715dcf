"""Reads the fields of NULL structs as NULL, in statements over tables that hold values there.

These are Arrow files, and structs that may be NULL with fields that may not; see
`rows.null_structs` for the rows of other tables.
"""

import re
from collections.abc import Iterator, Sequence

import pyarrow as pa

from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_READS = re.compile(r"[\[.]|\bget_field\b|\bunnest\b", re.IGNORECASE)
_FORM = "CASE WHEN __guard THEN __field END"
_NAMED = ("Identifier", "CompoundIdentifier")


def may_apply(words: str) -> bool:
    """Return whether a statement may read fields."""
    return _READS.search(words) is not None


def mend(scope: SelectScope, types: Types) -> bool:
    """Read fields only where their structs are not NULL; return whether there were any."""
    structs = _Structs(scope, types)
    changed = False
    # Inner ones first, because the forms of outer ones have copies of them.
    for each in reversed(scope.expressions()):
        wholes = list(structs.around(each))
        if wholes and not scopes.is_volatile(each):
            syntax.replace(each, {"Nested": _guarded(dict(each), wholes)})
            changed = True
    return changed


def spread(scope: SelectScope, types: Types) -> bool:
    """Write `unnest` of a struct as the fields that it is; return whether there was any."""
    items = scope.select["projection"]
    made = [each for item in items for each in _spread(item, scope, types)]
    is_changed = len(made) != len(items) or any(
        a is not b for a, b in zip(made, items, strict=True)
    )
    items[:] = made
    return is_changed


def _spread(item: Tree, scope: SelectScope, types: Types) -> Iterator[Tree]:
    call = item.get("UnnamedExpr")
    given = syntax.arguments(call) if call and syntax.function_name(call) == "unnest" else []
    (type_,) = types.types_of(scope, given) if len(given) == 1 else (None,)
    if type_ is None or not pa.types.is_struct(type_):
        yield item
        return
    names = types.names(scope, call)
    for index, field in enumerate(type_):
        read = _subscripted(syntax.copied(given[0]), field.name)
        yield item if names is None else scopes.named(read, names[index])


def _subscripted(root: Tree, name: str) -> Tree:
    form = syntax.filled("(__a)['x']", a=root)
    ((access,),) = (form["CompoundFieldAccess"]["access_chain"],)
    access["Subscript"]["Index"]["index"]["Value"]["value"]["SingleQuotedString"] = name
    return form


def _guarded(field: Tree, wholes: Sequence[Tree]) -> Tree:
    guard = {"IsNotNull": syntax.copied(wholes[0])}
    for whole in wholes[1:]:
        guard = syntax.filled("__a AND __b IS NOT NULL", a=guard, b=syntax.copied(whole))
    return syntax.filled(_FORM, guard=guard, field=field)


class _Structs:
    """Finds the structs around the fields that a SELECT reads."""

    def __init__(self, scope: SelectScope, types: Types) -> None:
        self._scope = scope
        self._types = types
        self._columns = types.struct_columns(scope)

    def around(self, tree: Tree) -> Iterator[Tree]:
        """Yield the structs around the field that an expression reads, the outermost first."""
        match syntax.kind(tree):
            case "CompoundFieldAccess":
                yield from self._of_chain(**tree["CompoundFieldAccess"])
            case "CompoundIdentifier":
                parts = tree["CompoundIdentifier"]
                yield from map(_column, _prefixes(parts, self._whole(parts), len(parts)))
            case "Function" if syntax.function_name(tree) == "get_field":
                root, *path = syntax.arguments(tree)
                for count in range(len(path)):
                    yield _field_of(tree, [root, *path[:count]]) if count else root

    def _of_chain(self, root: Tree, access_chain: Sequence[Tree]) -> Iterator[Tree]:
        dots = [each["Dot"]["Identifier"] for each in _dots(access_chain)]
        start = 0
        if syntax.kind(root) in _NAMED and dots:
            # The first names may be those of a relation.
            body = syntax.body(root)
            parts = [*(body if isinstance(body, list) else [body]), *dots]
            start = self._whole(parts) - (len(parts) - len(dots))
        for count in range(start, len(access_chain)):
            chain = list(access_chain[:count])
            yield {"CompoundFieldAccess": {"root": root, "access_chain": chain}} if chain else root

    def _whole(self, parts: Sequence[Tree]) -> int:
        """Return how many parts of a name are those of a column; the others are fields of it."""
        names = [syntax.spelled(each) for each in parts]
        if self._columns is not None and not self._columns.intersection(names[:-1]):
            return len(names)
        shown = self._types.name(self._scope, _column(parts))
        for count in range(1, len(names)):
            fields = "".join(f"[{each}]" for each in names[count:])
            if shown is not None and shown.endswith(fields):
                return count
        return len(names)


def _prefixes(parts: Sequence[Tree], start: int, end: int) -> Iterator[Sequence[Tree]]:
    for count in range(start, end):
        yield parts[:count]


def _column(parts: Sequence[Tree]) -> Tree:
    return {"CompoundIdentifier": list(parts)} if len(parts) > 1 else {"Identifier": parts[0]}


def _dots(chain: Sequence[Tree]) -> Iterator[Tree]:
    for each in chain:
        if "Identifier" not in each.get("Dot", {}):
            return
        yield each


def _field_of(call: Tree, arguments: Sequence[Tree]) -> Tree:
    made: Tree = syntax.copied(call)
    made["Function"]["args"]["List"]["args"] = [{"Unnamed": {"Expr": each}} for each in arguments]
    return made
