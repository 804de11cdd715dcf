"""Checks the bodies of functions, and writes their parameters as placeholders.

A scalar body is an expression over its parameters alone. So nothing in it can mean a column of the
statement that calls it. A table body is a query, whose parameters are `$name`, or columns of a
table `args` with one row.
"""

from collections.abc import Collection, Iterator, Sequence

from caraway_core.sqltext import builtin_functions, comments, lexer, writing
from caraway_core.sqltext.lexer import SqlToken
from caraway_core.sqltext.sql_functions import SqlFunction

ARGS = "args"
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_QUERIES = frozenset({"SELECT", "VALUES", "WITH"})
KEYWORDS = frozenset(
    "AND ARRAY AS AT BETWEEN BOTH CASE CAST CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DATE "
    "DISTINCT DIV ELSE END ESCAPE EXTRACT FALSE FOR FROM ILIKE IN INTERVAL IS LEADING LIKE NOT "
    "NULL OR PLACING REGEXP RLIKE SAFE_CAST SIMILAR STRUCT THEN TIME TIMESTAMP TO TRAILING TRUE "
    "TRY_CAST UNKNOWN WHEN XOR ZONE".split()
)
"""Words that may be in an expression, so that parameters cannot have their names."""
_NOT_ALLOWED = frozenset(
    "FILTER GROUP HAVING INTO JOIN LATERAL LIMIT ORDER OVER PARTITION SELECT UNION WHERE "
    "WINDOW".split()
)
RESERVED = KEYWORDS | _NOT_ALLOWED
"""Words that parameters may not have as names."""
_OPERANDS = frozenset({"close", "dollar", "name", "number", "placeholder", "prefixed", "text"})
"""Kinds of tokens after which a word cannot begin a value, such as DAY in INTERVAL '1' DAY."""
_OF_AGGREGATES = builtin_functions.AGGREGATES | builtin_functions.WINDOWS


def tokens_of(text: str) -> list[SqlToken]:
    """Return the tokens of a text that can be put in parentheses, without comments.

    Raises:
        ValueError: a string, comment or parenthesis has no end, or there is more than a statement.
    """
    tokens = [each for each in lexer.tokens(f"{text}\n;") if each.kind != "comment"]
    if not tokens or tokens.pop().kind != "end":
        raise ValueError("has a string, a quoted name or a comment without an end")
    expected: list[str] = []
    for token in tokens:
        if token.kind == "open":
            expected.append(_CLOSING[token.text])
        elif token.kind == "close" and (not expected or token.text != expected.pop()):
            raise ValueError(f"has a '{token.text}' that closes nothing")
        elif token.kind == "end":
            raise ValueError("has more than one statement; remove the ';'")
    if expected:
        raise ValueError(f"lacks a '{expected[-1]}'")
    return tokens


def cleaned(text: str) -> str:
    """Return a text without comments and final semicolons."""
    return comments.left_out(text).strip().rstrip("; \t\r\n")


def is_query(text: str) -> bool:
    """Return whether a body is a query."""
    return lexer.first_word(cleaned(text).lstrip("( \t\r\n")) in _QUERIES


def called(text: str, names: Collection[str]) -> str | None:
    """Return the first of these functions that a text calls, or None. Cautious: reads words."""
    before = ""
    for token in lexer.significant(text):
        if token.text == "(" and before in names:
            return before
        is_name = token.kind in ("word", "name")
        before = token.text.strip('"`').lower() if is_name else ""
    return None


def prepared(function: SqlFunction) -> str:
    """Return the body with its parameters as `$name`.

    Raises:
        ValueError: it cannot be the body of this function.
    """
    text = cleaned(function.body)
    tokens = tokens_of(text)
    if not tokens:
        raise ValueError("is empty")
    if writing.may_change(text):
        raise ValueError("must only read: it cannot change a table")
    names = {each.name.lower() for each in function.parameters}
    if is_query(text) is not function.is_table:
        raise ValueError(
            "must be a query, such as SELECT ...: the function is a table"
            if function.is_table
            else "is a query: write `kind: table`, or an expression over the parameters"
        )
    places = _of_query(tokens, names) if function.is_table else _of_expression(tokens, names)
    pieces: list[str] = []
    done = 0
    for start, end, name in places:
        pieces += text[done:start], f"${name}"
        done = end
    text = "".join((*pieces, text[done:]))
    return _with_args(text, function) if function.is_table else text


def _of_expression(tokens: Sequence[SqlToken], names: set[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the places of parameters in an expression; refuse what else would be a name."""
    levels: list[str] = []
    for number, token in enumerate(tokens):
        before = tokens[number - 1] if number else None
        following = tokens[number + 1] if number + 1 < len(tokens) else None
        is_called = following is not None and following.text == "("
        match token.kind:
            case "open":
                levels.append(before.text.upper() if before and before.kind == "word" else "")
            case "close":
                levels.pop()
            case "placeholder":
                yield token.start, token.end, _of_placeholder(token, names)
            case "word" | "name":
                if is_called:
                    _check_call(token)
                elif not _is_no_value(tokens, number, levels):
                    yield token.start, token.end, _parameter(token, names)
            case "variable":
                raise ValueError(f"has '{token.text}', which means nothing here")


def _check_call(token: SqlToken) -> None:
    name = token.text.strip('"`').lower()
    if name in _OF_AGGREGATES:
        raise ValueError(f"calls {name}, which needs many rows; write a table function")
    if token.text.upper() in _NOT_ALLOWED:
        raise ValueError(f"has {token.text.upper()}: it must be an expression")


def _is_no_value(tokens: Sequence[SqlToken], number: int, levels: Sequence[str]) -> bool:
    """Return whether a word is a keyword, a type, a unit, a field or the name of an argument."""
    token, before = tokens[number], tokens[number - 1] if number else None
    following = tokens[number + 1 : number + 3]
    if token.kind == "word" and (word := token.text.upper()) in RESERVED:
        if word in _NOT_ALLOWED:
            raise ValueError(
                f"has {word}: the body of a scalar function is an expression without queries and "
                "windows"
            )
        return True
    if [each.text for each in following] == ["=", ">"] or (
        [each.text for each in following] == [":", "="]
    ):
        return True
    if before is None:
        return False
    if before.kind in _OPERANDS or before.text in ("::", "."):
        return True
    if before.kind == "word" and before.text.upper() == "AS":
        return True
    if before.text == "(" and levels[-1:] == ["EXTRACT"]:
        return True
    # Types of several words, such as DOUBLE PRECISION.
    return before.kind == "word" and before.text.upper() not in KEYWORDS


def _parameter(token: SqlToken, names: set[str]) -> str:
    text = token.text
    name = text.lower() if token.kind == "word" else text[1:-1].replace(text[0] * 2, text[0])
    if name not in names:
        told = ", ".join(sorted(names)) or "it has none"
        raise ValueError(f"names '{name}', which is no parameter: {told}")
    return name


def _of_placeholder(token: SqlToken, names: set[str]) -> str:
    name = token.text[1:].lower()
    if name not in names:
        told = ", ".join(f"${each}" for each in sorted(names)) or "it has none"
        raise ValueError(f"has the placeholder '{token.text}', which is no parameter: {told}")
    return name


def _of_query(tokens: Sequence[SqlToken], names: set[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the places of parameters in a query: `$name`, and `(SELECT name FROM args)`."""
    for number, token in enumerate(tokens):
        if token.kind == "placeholder":
            yield token.start, token.end, _of_placeholder(token, names)
        words = [each.text.lower() for each in tokens[number : number + 6]]
        if len(words) == 6 and [words[0], words[1], *words[3:]] == [
            "(", "select", "from", ARGS, ")"
        ] and words[2] in names:  # fmt: skip
            yield token.start, tokens[number + 5].end, words[2]


def _with_args(text: str, function: SqlFunction) -> str:
    """Define the table `args` for a query that reads it."""
    tokens = tokens_of(text)
    is_read = any(
        token.text.lower() == ARGS and number and _begins_table(tokens, number)
        for number, token in enumerate(tokens)
    )
    if not is_read or not function.parameters:
        return text
    columns = ", ".join(
        f'${each.name.lower()} AS "{each.name.lower()}"' for each in function.parameters
    )
    table = f"{ARGS} AS (SELECT {columns})"
    if tokens[0].text.upper() != "WITH":
        return f"WITH {table} {text}"
    place = tokens[1].end if tokens[1].text.upper() == "RECURSIVE" else tokens[0].end
    return f"{text[:place]} {table}, {text[place:]}"


def _begins_table(tokens: Sequence[SqlToken], number: int) -> bool:
    return tokens[number - 1].text.upper() in ("FROM", "JOIN", ",")
