"""Long texts of one token are looked at once, wherever they stand in a statement."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from datafusion import SessionContext

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext import comments, placeholders, writing
from caraway_engine import known_faults
from caraway_engine.statements import bounds
from tests.engine.known_faults.memory import Asked

pytestmark = [pytest.mark.full, pytest.mark.timeout(120)]

CHARACTERS = 1_000_000
TOKENS = (
    "00:00 ", "a/", "-", "+00", ":00.0", "1", "1.", "e1", "%", "_", "[", "]", "(", "{", " ", "\n",
    "--", "/*", "aa", ".", "=", ",", "a ", "0 days ", "1 month ", "[[:alpha:]", "|", "*", "a.b",
    "$1", "?", "\\\\", "Z", "\"", "union where ", "and (", "in (1,", "limit ",
)  # fmt: skip
PLACES = (
    "SELECT k FROM t WHERE v > 1 AND TIMESTAMP '{}' > now()",
    "SELECT k FROM t WHERE DATE '{}' > now()",
    "SELECT k FROM t WHERE TIME '{}' = TIME '10:00'",
    "SELECT now() + INTERVAL '{}' FROM t",
    "SELECT k FROM t WHERE CAST(k AS TEXT) LIKE '{}'",
    "SELECT k FROM t WHERE CAST(k AS TEXT) SIMILAR TO '{}'",
    "SELECT k FROM t WHERE CAST(k AS TEXT) ~ '{}'",
    'SELECT k AS "{}" FROM t UNION SELECT 1',
    "SELECT k FROM t WHERE 'a' = '{}' UNION ALL SELECT 1 WHERE 1 = 0",
    "SELECT k + 1 FROM t /* {} */ WHERE k > 2",
    "SELECT round(k, 1) FROM t WHERE CAST(k AS TEXT) IN ('{}', 'x')",
    "SELECT sum(k) OVER (ORDER BY '{}') FROM t",
    "SELECT k FROM t ORDER BY {}",
    "SELECT 1 {}",
    "{}",
)
READERS: tuple[Callable[[str], object], ...] = (
    comments.left_out, placeholders.find, writing.begins_with_write,
)  # fmt: skip


def _unplanned(_sql: str) -> object:
    """Fail as the engine does where remedies look at the statement again."""
    raise ValueError("duplicate unqualified field name x")


@pytest.mark.parametrize("token", TOKENS)
def test_a_megabyte_of_one_token(asked: Asked, token: str) -> None:
    context: SessionContext = asked.context
    for place in PLACES:
        sql = place.format(token * (CHARACTERS // len(token)))
        for read in READERS:
            read(sql)
        with suppress(InvalidQueryError):
            bounds.check(sql)
            known_faults.mend(context, sql)
            with pytest.raises(ValueError, match="duplicate"):
                known_faults.planned(context, sql, _unplanned)
