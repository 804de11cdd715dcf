"""Parses SQL with the engine's own parser, and changes parts of the syntax tree.

A tree consists of dicts and lists. An expression is a dict with one key, its kind: `{"BinaryOp":
{"left": ..., "op": "Plus", "right": ...}}`. A query and a SELECT are dicts with known keys. Parts
are changed in place, so every reference to a part sees the change.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeAlias

import sqloxide

Tree: TypeAlias = Any
_DIALECT = "generic"
_PLACE = "__"
_MOST_DIGITS = 19
OPAQUE = "nullif(__a, NULL)"
"""The same value, but the optimizer knows neither its order nor its equals."""


class SyntaxUnknownError(Exception):
    """The text is not SQL that this parser supports."""


def parse(sql: str) -> list[Tree]:
    """Parse statements.

    Raises:
        SyntaxUnknownError: the parser does not support the text.
    """
    try:
        return list(sqloxide.parse_sql(sql, dialect=_DIALECT))
    except ValueError as exc:
        raise SyntaxUnknownError(str(exc)) from exc


def restored(statement: Tree) -> str:
    """Return the SQL text of a statement."""
    return str(sqloxide.restore_ast([statement])[0])


def text(expression: Tree) -> str:
    """Return the SQL text of an expression."""
    return select([{"UnnamedExpr": expression}], [], None).removeprefix("SELECT ")


def kind(expression: Tree) -> str:
    """Return the kind of an expression, or "" for other trees."""
    if isinstance(expression, dict) and len(expression) == 1:
        return str(next(iter(expression)))
    return ""


def body(expression: Tree) -> Tree:
    """Return the content of an expression, without its kind."""
    return next(iter(expression.values()))


def is_query(tree: Tree) -> bool:
    """Return whether a tree is a query."""
    return isinstance(tree, dict) and "body" in tree and "with" in tree


_PLACES = ("span", "select_token")
"""The keys of text positions, which are as large as the rest of a tree."""


def _below(tree: dict[str, Tree] | list[Tree] | tuple[Tree, ...]) -> list[Tree]:
    """Return the children of a tree, without names, positions and constants."""
    if isinstance(tree, dict):
        if "quote_style" in tree:
            return []
        return [
            each
            for key, each in tree.items()
            if isinstance(each, _HOLDING) and key not in _PLACES and _CONSTANT not in each
        ]
    # Lists may have thousands of constants, and every remedy walks the tree.
    return [each for each in tree if isinstance(each, _HOLDING) and _CONSTANT not in each]


_HOLDING = (dict, list, tuple)
_CONSTANT = "Value"
"""The kind of literals and parameters, in which no remedy looks for anything."""


def copied(tree: Tree) -> Tree:
    """Return a copy, faster than `copy.deepcopy`; text positions are shared."""
    if isinstance(tree, dict):
        return {key: each if key == "span" else copied(each) for key, each in tree.items()}
    return [copied(each) for each in tree] if isinstance(tree, list | tuple) else tree


def inside(tree: Tree) -> Iterator[Tree]:
    """Yield the dicts of a tree in pre-order, without constants and the contents of queries."""
    waiting = [tree] if isinstance(tree, _HOLDING) else []
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            if is_query(each):
                continue
        waiting += reversed(_below(each))


def columns(tree: Tree) -> Iterator[Tree]:
    """Yield the columns that an expression names, without those of subqueries."""
    waiting = [tree]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if is_query(each):
                continue
            if kind(each) in ("Identifier", "CompoundIdentifier"):
                yield each
                continue
            # The name of a function has the same form.
            parts = {**each, "name": None} if "over" in each and "within_group" in each else each
            waiting += _below(parts)
        else:
            waiting += _below(each)


def everything(tree: Tree) -> Iterator[Tree]:
    """Yield all dicts of a tree but constants, including those of queries."""
    waiting = [tree] if isinstance(tree, _HOLDING) else []
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
        waiting += _below(each)


def replace(tree: Tree, new: Tree) -> None:
    """Replace a tree in place, so that all references to the old dict see the new tree."""
    old = dict(tree)
    tree.clear()
    tree.update(old if new is tree else new)


def filled(text: str, **places: Tree) -> Tree:
    """Make an expression from a text with places such as `__a`, and the trees to put there.

    Each tree is put in parentheses, so any expression fits.
    """
    return _filled(_expression(text), {_PLACE + name: tree for name, tree in places.items()})


def put(form: Tree, **places: Tree) -> Tree:
    """Fill the remaining places of an expression that `filled` made."""
    return _filled(form, {_PLACE + name: tree for name, tree in places.items()})


def _filled(tree: Tree, places: dict[str, Tree]) -> Tree:
    if isinstance(tree, dict):
        if "Identifier" in tree and (name := tree["Identifier"]["value"]) in places:
            return {"Nested": places[name]}
        return {key: each if key == "span" else _filled(each, places) for key, each in tree.items()}
    return [_filled(each, places) for each in tree] if isinstance(tree, list | tuple) else tree


@cache
def _expression(text: str) -> Tree:
    (statement,) = parse(f"SELECT {text}")
    return statement["Query"]["body"]["Select"]["projection"][0]["UnnamedExpr"]


@cache
def _blank() -> Tree:
    (statement,) = parse("SELECT 1")
    return statement


def select(projection: list[Tree], from_: list[Tree], with_: Tree, group_by: Tree = None) -> str:
    """Return the SQL of a SELECT with only these parts."""
    blank = _blank()["Query"]
    made = {**blank["body"]["Select"], "projection": projection, "from": from_}
    if group_by is not None:
        made["group_by"] = group_by
    return restored({"Query": {**blank, "with": with_, "body": {"Select": made}}})


def selected(projection: list[Tree], from_: list[Tree], condition: Tree) -> Tree:
    """Make a SELECT with only these parts."""
    parts = {"projection": projection, "from": from_, "selection": condition}
    return {**_blank()["Query"]["body"]["Select"], **parts}


def query(body_: Tree) -> Tree:
    """Make a query from a SELECT or a set operation."""
    return {**_blank()["Query"], "body": body_}


def identifier(name: str) -> Tree:
    """Make a quoted identifier."""
    at = {"line": 0, "column": 0}
    if '""' in name:
        # The parser's library writes two quotes as they are, and doubles a single one.
        name = name.replace('"', '""')
    return {"value": name, "quote_style": '"', "span": {"start": at, "end": at}}


def spelled(name: Tree) -> str:
    """Return a name as the engine reads it: lower case unless quoted."""
    value = str(name["value"])
    return value if name["quote_style"] else value.lower()


def function_name(expression: Tree) -> str:
    """Return the name of the called function, or "" if it is not a call."""
    if kind(expression) != "Function":
        return ""
    last = expression["Function"]["name"][-1]
    return spelled(last["Identifier"]) if "Identifier" in last else ""


def arguments(call: Tree) -> list[Tree]:
    """Return the arguments of a call that are expressions."""
    given = call["Function"]["args"]
    if kind(given) != "List":
        return []
    trees = [each["Unnamed"] for each in given["List"]["args"] if "Unnamed" in each]
    return [each["Expr"] for each in trees if isinstance(each, dict) and "Expr" in each]


def is_distinct(call: Tree) -> bool:
    """Return whether a call has DISTINCT."""
    given = call["Function"]["args"]
    return kind(given) == "List" and given["List"]["duplicate_treatment"] == "Distinct"


def is_windowed(call: Tree) -> bool:
    """Return whether a call is a window function."""
    return call["Function"]["over"] is not None


def with_argument(call: Tree, argument: Tree, name: str = "") -> Tree:
    """Return a call with another argument, and optionally another function name."""
    made = {"Function": dict(call["Function"])}
    given = dict(call["Function"]["args"]["List"])
    given["args"] = [{"Unnamed": {"Expr": argument}}]
    made["Function"]["args"] = {"List": given}
    if name:
        made["Function"]["name"] = [{"Identifier": {**identifier(name), "quote_style": None}}]
    return made


def unnested(expression: Tree) -> Tree:
    """Return an expression without enclosing parentheses."""
    while kind(expression) == "Nested":
        expression = body(expression)
    return expression


def is_constant(expression: Tree) -> bool:
    """Return whether an expression is a literal or a parameter, or a negative number."""
    return kind(expression) in (_CONSTANT, "TypedString") or number(expression) is not None


def position(expression: Tree) -> int | None:
    """Return the value of an expression that is a position in GROUP BY and ORDER BY, or None."""
    return number(expression) if kind(expression) == _CONSTANT else None


def number(expression: Tree) -> int | None:
    """Return the value of a literal of BIGINT, which may be negative, or None."""
    inner = unnested(expression)
    if kind(inner) == "UnaryOp" and inner["UnaryOp"]["op"] in ("Minus", "Plus"):
        value = number(inner["UnaryOp"]["expr"])
        return value if value is None or inner["UnaryOp"]["op"] == "Plus" else -value
    if kind(inner) != "Value" or kind(inner["Value"]["value"]) != "Number":
        return None
    text = inner["Value"]["value"]["Number"][0]
    return whole(text)


def whole(text: str) -> int | None:
    """Return the value of digits, or None if they are none or too many for a BIGINT."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None
