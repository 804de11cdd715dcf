"""Checks the size of SQL texts, for every protocol and for jobs."""

from caraway_core.errors import InvalidQueryError

MOST_BYTES = 4 * 1024 * 1024
_WIDEST = 4
"""The maximum number of UTF-8 bytes of one character."""


def check(sql: str, most_bytes: int = MOST_BYTES) -> None:
    """Reject a text that is empty or too long.

    Raises:
        InvalidQueryError: it is; the message says what to do.
    """
    if not sql.strip():
        raise InvalidQueryError("the statement is empty; send SQL text, for example SELECT 1")
    if len(sql) * _WIDEST <= most_bytes:
        return
    if len(sql) > most_bytes or len(sql.encode(errors="surrogatepass")) > most_bytes:
        raise InvalidQueryError(
            f"the statement has more than {most_bytes} bytes; split it, send values as "
            "parameters, or raise runtime.query.max_sql_size"
        )


def check_plan(plan: bytes, most_bytes: int = MOST_BYTES) -> None:
    """Reject a Substrait plan that is empty or too long. Raises the same as `check`."""
    if not plan:
        raise InvalidQueryError("the Substrait plan is empty; send the bytes of a substrait.Plan")
    if len(plan) > most_bytes:
        raise InvalidQueryError(
            f"the Substrait plan has more than {most_bytes} bytes; split it, or raise "
            "runtime.query.max_sql_size"
        )
