"""Reports syntax errors of a filter with line and column in the text of the user.

A statement has the filter in a subquery. The engine also parses the subquery as a joined table, and
reports the error of that attempt. Its line and column are wrong for the text of the user.
"""

import re
from collections.abc import Awaitable, Callable

from caraway_core.errors import InvalidQueryError, QueryError

_WRONG = "syntax error: "
_STATEMENT = "SELECT 1 WHERE\n"
_PLACE = re.compile(r"Line: (?P<line>\d+), Column: (?P<column>\d+)")


def is_wrong(exc: InvalidQueryError) -> bool:
    """True if the engine could not read a statement."""
    return exc.message.startswith(_WRONG)


async def explained(
    where: str, run: Callable[[str], Awaitable[object]]
) -> InvalidQueryError | None:
    """Return the error of a filter in parentheses; None if the engine can read it.

    `run` runs a statement.
    """
    try:
        await run(f"{_STATEMENT}{where}")
    except InvalidQueryError as exc:
        if is_wrong(exc):
            # The closing parenthesis is alone on the last line; the user did not send it.
            end = f"found: ) at Line: {where.count(chr(10)) + 2}, Column: 1"
            message = exc.message.replace(end, "found: the end")
            return InvalidQueryError(f"where: {_PLACE.sub(_as_sent, message)}")
    except QueryError:
        pass  # It can be read, and has columns that are not there.
    return None


def _as_sent(match: re.Match[str]) -> str:
    line, column = int(match["line"]), int(match["column"])
    opening = 1 if line == 2 else 0
    return f"Line: {line - 1}, Column: {column - opening}"
