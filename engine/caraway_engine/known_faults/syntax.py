"""SQL as the tree that the engine's own parser makes of it, and how to change parts of it.

A tree is made of dicts and lists. An expression is a dict with one key, its kind: `{"BinaryOp":
{"left": ..., "op": "Plus", "right": ...}}`. A query and a SELECT are dicts with known keys. Parts
are changed in place, so what refers to a part sees the change.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeAlias

import sqloxide

Tree: TypeAlias = Any
_DIALECT = "generic"
_PLACE = "__"


class SyntaxUnknownError(Exception):
    """The text is not SQL that this parser reads."""


def parse(sql: str) -> list[Tree]:
    """Parse statements.

    Raises:
        SyntaxUnknownError: the parser does not read it.
    """
    try:
        return list(sqloxide.parse_sql(sql, dialect=_DIALECT))
    except ValueError as exc:
        raise SyntaxUnknownError(str(exc)) from exc


def restored(statement: Tree) -> str:
    """Write a statement as SQL."""
    return str(sqloxide.restore_ast([statement])[0])


def kind(expression: Tree) -> str:
    """Return the kind of an expression; empty for what is none."""
    if isinstance(expression, dict) and len(expression) == 1:
        return str(next(iter(expression)))
    return ""


def body(expression: Tree) -> Tree:
    """Return what an expression says beside its kind."""
    return next(iter(expression.values()))


def is_query(tree: Tree) -> bool:
    return isinstance(tree, dict) and "body" in tree and "with" in tree


def is_select(tree: Tree) -> bool:
    return isinstance(tree, dict) and "projection" in tree and "from" in tree


_PLACES = ("span", "select_token")
"""Where something stands in the text; as much as all the rest of a tree."""


def _below(tree: dict[str, Tree] | list[Tree] | tuple[Tree, ...]) -> list[Tree]:
    """Return what a tree holds, one level down, without names, places and values."""
    if isinstance(tree, dict):
        if "quote_style" in tree:
            return []
        return [
            each for key, each in tree.items() if isinstance(each, _HOLDING) and key not in _PLACES
        ]
    return [each for each in tree if isinstance(each, _HOLDING)]


_HOLDING = (dict, list, tuple)


def copied(tree: Tree) -> Tree:
    """Return a copy, faster than the standard library's; places in the text are shared."""
    if isinstance(tree, dict):
        return {key: each if key == "span" else copied(each) for key, each in tree.items()}
    return [copied(each) for each in tree] if isinstance(tree, list | tuple) else tree


def inside(tree: Tree) -> Iterator[Tree]:
    """Yield the dicts of a tree, each before those that it holds, but not those of queries."""
    waiting = [tree] if isinstance(tree, _HOLDING) else []
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            if is_query(each):
                continue
        waiting += reversed(_below(each))


def everything(tree: Tree) -> Iterator[Tree]:
    """Yield all dicts of a tree, those of queries too."""
    waiting = [tree] if isinstance(tree, _HOLDING) else []
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
        waiting += _below(each)


def replace(tree: Tree, new: Tree) -> None:
    """Put another tree in the place of one; whoever holds the old dict sees the new."""
    old = dict(tree)
    tree.clear()
    tree.update(old if new is tree else new)


def filled(text: str, **places: Tree) -> Tree:
    """Make an expression of a text with places such as `__a`, and what stands there.

    A place is put in parentheses, so any expression can stand there.
    """
    return _filled(_expression(text), {_PLACE + name: tree for name, tree in places.items()})


def put(form: Tree, **places: Tree) -> Tree:
    """Put expressions in the places that are left in one that `filled` made."""
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
    """Write a SELECT with nothing but these parts."""
    blank = _blank()["Query"]
    made = {**blank["body"]["Select"], "projection": projection, "from": from_}
    if group_by is not None:
        made["group_by"] = group_by
    return restored({"Query": {**blank, "with": with_, "body": {"Select": made}}})


def query(body_: Tree) -> Tree:
    """Make a query of a SELECT or of what combines several."""
    return {**_blank()["Query"], "body": body_}


def identifier(name: str) -> Tree:
    """Make a name that is written just so."""
    at = {"line": 0, "column": 0}
    return {"value": name, "quote_style": '"', "span": {"start": at, "end": at}}


def spelled(name: Tree) -> str:
    """Return a name as the engine reads it: without quotes in small letters."""
    value = str(name["value"])
    return value if name["quote_style"] else value.lower()


def function_name(expression: Tree) -> str:
    """Return the name of a function that is called; empty for what is no call."""
    if kind(expression) != "Function":
        return ""
    last = expression["Function"]["name"][-1]
    return spelled(last["Identifier"]) if "Identifier" in last else ""


def arguments(call: Tree) -> list[Tree]:
    """Return the arguments of a call that are expressions."""
    given = call["Function"]["args"]
    if kind(given) != "List":
        return []
    found = [each["Unnamed"] for each in given["List"]["args"] if "Unnamed" in each]
    return [each["Expr"] for each in found if isinstance(each, dict) and "Expr" in each]


def is_distinct(call: Tree) -> bool:
    given = call["Function"]["args"]
    return kind(given) == "List" and given["List"]["duplicate_treatment"] == "Distinct"


def is_windowed(call: Tree) -> bool:
    return call["Function"]["over"] is not None


def with_argument(call: Tree, argument: Tree, name: str = "") -> Tree:
    """Return the same call of another argument, or of another function."""
    made = {"Function": dict(call["Function"])}
    given = dict(call["Function"]["args"]["List"])
    given["args"] = [{"Unnamed": {"Expr": argument}}]
    made["Function"]["args"] = {"List": given}
    if name:
        made["Function"]["name"] = [{"Identifier": {**identifier(name), "quote_style": None}}]
    return made


def unnested(expression: Tree) -> Tree:
    """Return an expression without the parentheses around it."""
    while kind(expression) == "Nested":
        expression = body(expression)
    return expression


def number(expression: Tree) -> int | None:
    """Return the value of a whole number that is written out, also of a negative one."""
    inner = unnested(expression)
    if kind(inner) == "UnaryOp" and inner["UnaryOp"]["op"] in ("Minus", "Plus"):
        value = number(inner["UnaryOp"]["expr"])
        return value if value is None or inner["UnaryOp"]["op"] == "Plus" else -value
    if kind(inner) != "Value" or kind(inner["Value"]["value"]) != "Number":
        return None
    text = inner["Value"]["value"]["Number"][0]
    return int(text) if text.isdigit() else None
