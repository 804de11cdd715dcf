"""Rewrites EXCEPT ALL and INTERSECT ALL, because DataFusion 55 ignores duplicates.

Equal rows are numbered on both sides, which makes each row distinct. EXCEPT and INTERSECT of the
numbered rows then keep the right number of rows.
"""

from collections.abc import Iterator

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.syntax import Tree

_WORDS = {"Except": "EXCEPT", "Intersect": "INTERSECT"}
_SIDE = (
    "SELECT {columns}, row_number() OVER (PARTITION BY {columns}) AS n "
    "FROM ({side}) AS {name}({columns})"
)
_WHOLE = "SELECT {named} FROM ({left} {word} {right}) AS numbered"


def mend(statement: Tree, types: Types) -> bool:
    """Number the rows of each EXCEPT ALL and INTERSECT ALL; return whether there were any.

    Raises:
        InvalidQueryError: the columns of one of them are not known.
    """
    is_changed = False
    while found := next(_to_mend(statement), None):
        tree, with_ = found
        syntax.replace(tree, _numbered(tree["SetOperation"], with_, types))
        is_changed = True
    return is_changed


def _to_mend(statement: Tree) -> Iterator[tuple[Tree, Tree]]:
    for tree, with_ in scopes.set_operations(statement):
        operation = tree["SetOperation"]
        if operation["op"] in _WORDS and operation["set_quantifier"] == "All":
            yield tree, with_


def _numbered(operation: Tree, with_: Tree, types: Types) -> Tree:
    schema = types.schema(syntax.query(operation["left"]), with_)
    word = _WORDS[operation["op"]]
    if schema is None:
        raise InvalidQueryError(
            f"{word} ALL is not supported in a correlated subquery, which names columns of the "
            f"outer query; use {word} and count equal rows with GROUP BY"
        )
    columns = [f"c{number}" for number in range(len(schema.names))]
    left, right = (
        _SIDE.format(
            columns=", ".join(columns),
            side=syntax.restored({"Query": syntax.query(operation[side])}),
            name=side + "_rows",
        )
        for side in ("left", "right")
    )
    named = ", ".join(
        f'{column} AS "{name.replace(chr(34), chr(34) * 2)}"'
        for column, name in zip(columns, schema.names, strict=True)
    )
    (tree,) = syntax.parse(_WHOLE.format(named=named, left=left, word=word, right=right))
    body: Tree = tree["Query"]["body"]
    return body
