"""The grammar of SQL tokens, as fragments of verbose regular expressions.

It follows the generic dialect of the engine's parser. An unclosed token extends to the end of the
text. Fragments never backtrack, so every text is read in linear time.
"""

from collections.abc import Mapping


def _quoted(quote: str) -> str:
    """Return the pattern of a quoted string, in which a quote is doubled."""
    return rf"{quote}(?:[^{quote}]++|{quote}{quote})*+(?:{quote}|\Z)"


def _tripled(quote: str) -> str:
    return rf"{quote * 3}(?:[^{quote}]++|{quote}(?!{quote * 2}))*+(?:{quote * 3}|\Z)"


def _bracketed(opening: str, closing: str) -> str:
    return rf"{opening}(?:[^{closing}]++|{closing}(?!'))*+(?:{closing}'|\Z)"


_LETTER = r"[^\W\d]"
_REST_OF_WORD = r"[\w@\#$]*+"
_IN_DOUBLE_QUOTES = _quoted('"')
_IN_BACKTICKS = _quoted("`")
_IN_BRACKETS = " | ".join(
    (_bracketed(r"\[", r"\]"), _bracketed("{", "}"), _bracketed("<", ">"), _bracketed(r"\(", r"\)"))
)
_IN_THREE_QUOTES = " | ".join((_tripled("'"), _tripled('"')))

COMMENT = r"(?:--[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z))"
"""A comment without nested comments; the lexer handles nested ones."""
TEXT = _quoted("'")
PREFIXED_TEXT = rf"""(?:
      [eExX]'(?:[^'\\]++|\\.|'')*+(?:'|\\?\Z)
    | [rR](?:{_IN_THREE_QUOTES})
    | (?:[bBrRnN]|[uU]&){TEXT}
    | [bBrR]{_IN_DOUBLE_QUOTES}
    | [nN]?[qQ]'(?:
          {_IN_BRACKETS}
        | (?P<delimiter>[^\ \t\r\n\[{{<(])(?:(?!(?P=delimiter)').)*+(?:(?P=delimiter)'|\Z)
      )
)"""
_BEGINS_PREFIXED_TEXT = r"(?=[bBeEnNqQrRuUxX]['\"&qQ])"
"""A lookahead that keeps most words from being tried as a prefixed string."""
DOLLAR_TEXT = r"\$(?P<tag>\w*+)\$(?:[^$]++|\$(?!(?P=tag)\$))*+(?:\$(?P=tag)\$|\Z)"
QUOTED_NAME = rf"(?:{_IN_DOUBLE_QUOTES}|{_IN_BACKTICKS})"
WORD = rf"{_LETTER}{_REST_OF_WORD}"
# The parser accepts any following character in such a word, even a quote.
VARIABLE = rf"(?:\#[^-> ]|@(?:@[^\ ]|[^@>?'\"` ])){_REST_OF_WORD}"
NUMBER = r"(?:0x[0-9a-fA-F]*+|(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?+L?+)"
# In `a:b` and `x[1:n]` a name, a number, a string or a bracket precedes the colon.
PLACEHOLDER = rf"(?:\$\w++|(?<!\$)\?\d*+|(?<![\w\])\"'`$@\#]):{_LETTER}\w*+(?![@\#$]))"
OPERATOR = r"(?:::|\|\||<=|>=|<>|!=|->>?|\#-|//|[-+*/%<>=~&|^])"

TOKENS: Mapping[str, str] = {
    "prefixed": f"{_BEGINS_PREFIXED_TEXT}{PREFIXED_TEXT}",
    "word": WORD,
    "comma": ",",
    "open": r"[(\[{]",
    "close": r"[)\]}]",
    "text": TEXT,
    "number": f"(?=[.0-9]){NUMBER}",
    "comment": f"(?=[-/]){COMMENT}",
    "operator": rf"(?=[-+*/%<>=~&|^!:\#]){OPERATOR}",
    "name": f'(?=["`]){QUOTED_NAME}',
    "dollar": DOLLAR_TEXT,
    "placeholder": f"(?=[$?:]){PLACEHOLDER}",
    "end": ";",
    "variable": rf"(?=[@\#]){VARIABLE}",
    "other": r"\S",
}
"""The kinds of tokens, in the order of matching; lookaheads avoid most attempts."""
ANY_TOKEN = f"(?:{'|'.join(TOKENS.values())})"

CLOSED_QUOTED_NAME = r'"(?:[^"]|"")*+"'
CLOSED_NAME = rf"(?:{WORD}|{CLOSED_QUOTED_NAME}|`(?:[^`]|``)*+`)"
"""A part of a name, quoted or not; unclosed quotes do not match."""
