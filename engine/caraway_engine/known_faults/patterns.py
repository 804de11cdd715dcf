r"""Writes patterns as the regular expressions that they are, because DataFusion 55 does not.

It takes the pattern of SIMILAR TO for a regular expression that a part of the text may match: `%`
and `_` match only themselves, and `a` matches `xay`. And it takes `x ~ '.*'` for IS NOT NULL, which
is false where NULL is correct.
"""

import re
from collections.abc import Iterator

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_ANY_TEXT = ".*"
_ANY_GROUP = "(.*)"
_MATCHES = frozenset({"PGRegexMatch", "PGRegexIMatch"})
_WILDCARDS = {"%": "(?s:.*)", "_": "(?s:.)"}
_SIGNS = frozenset("|*+?(){}")
"""These mean the same in SIMILAR TO and in a regular expression."""
_CLASS = re.compile(r"\[\^?\]?(?:\[:\w+:\]|[^\]])*\]")
_NAMED = re.compile(r"(\[:\w+:\])")


def may_apply(words: str) -> bool:
    """Return whether a statement in lower case may have such a pattern."""
    return "similar" in words or f"'{_ANY_TEXT}'" in words


def mend(scope: SelectScope) -> bool:
    """Rewrite the patterns of a SELECT; return whether there were any.

    Raises:
        InvalidQueryError: a pattern of SIMILAR TO is not a constant, or is not whole.
    """
    found = False
    for each in list(scope.expressions()):
        match syntax.kind(each):
            case "SimilarTo":
                syntax.replace(each, _similar(each["SimilarTo"]))
                found = True
            case "BinaryOp" if each["BinaryOp"]["op"] in _MATCHES:
                found |= _grouped(each["BinaryOp"]["right"])
            case "Function" if syntax.function_name(each) == "regexp_like":
                found |= any(map(_grouped, syntax.arguments(each)[1:2]))
    return found


def _similar(similar: Tree) -> Tree:
    pattern = syntax.unnested(similar["pattern"])
    text = _text(pattern)
    if text is None:
        raise InvalidQueryError(
            "the pattern of SIMILAR TO must be a constant text, as the engine would read it as a "
            "regular expression; write LIKE, or ~ with a regular expression"
        )
    escape = similar["escape_char"]
    sign = "\\" if escape is None else str(syntax.body(escape))
    expression = "^(?:" + "".join(_translated(text, sign)) + ")$"
    value = _with_text(pattern, expression)
    operator = "!~" if similar["negated"] else "~"
    return {"Nested": syntax.filled(f"__a {operator} __b", a=similar["expr"], b=value)}


def _translated(text: str, escape: str) -> Iterator[str]:
    place = 0
    while place < len(text):
        sign = text[place]
        place += 1
        if sign == escape:
            if place == len(text):
                raise InvalidQueryError("the pattern of SIMILAR TO ends with its escape character")
            yield re.escape(text[place])
            place += 1
        elif sign == "[":
            found = _CLASS.match(text, place - 1)
            if found is None:
                raise InvalidQueryError("the pattern of SIMILAR TO has a [ without a ]")
            yield _of_class(found[0], escape)
            place = found.end()
        else:
            yield _WILDCARDS.get(sign) or (sign if sign in _SIGNS else re.escape(sign))


def _of_class(text: str, escape: str) -> str:
    """Write a class of characters; the engine's expressions have operators in it."""
    start = "[^" if text.startswith("[^") else "["
    parts = _NAMED.split(text[len(start) : -1])
    plain = (re.sub(r"([\[\]&~\\])", r"\\\1", each.replace(escape, "")) for each in parts[::2])
    named = [*parts[1::2], ""]
    return start + "".join(map("".join, zip(plain, named, strict=True))) + "]"


def _grouped(pattern: Tree) -> bool:
    if _text(syntax.unnested(pattern)) != _ANY_TEXT:
        return False
    syntax.replace(pattern, _with_text(syntax.unnested(pattern), _ANY_GROUP))
    return True


def _text(tree: Tree) -> str | None:
    """Return the value of a constant text, or None for other expressions."""
    if syntax.kind(tree) != "Value":
        return None
    value = tree["Value"]["value"]
    return str(syntax.body(value)) if syntax.kind(value) == "SingleQuotedString" else None


def _with_text(tree: Tree, text: str) -> Tree:
    return {"Value": {**tree["Value"], "value": {"SingleQuotedString": text}}}
