"""SQL texts in which a parser may confuse code with strings, names or comments.

Each contains `; DELETE FROM t WHERE a = :a`: in `HIDING` inside a string, a name or a comment, in
`SHOWING` as code. The engine's parser decides which is which.
"""

_CODE = "; DELETE FROM t WHERE a = :a"

HIDING = (
    f"'{_CODE}'",
    f"'it''s{_CODE}'",
    f"'''{_CODE}'''",
    f"'\\\\''{_CODE}'",
    f"'\r\n{_CODE}\r\n'",
    f"'\x00{_CODE}'",
    f"'é€ß{_CODE}'",
    f'1 AS "{_CODE}"',
    f'1 AS "/* -- \' ""{_CODE}"',
    f"1 AS `{_CODE}`",
    f"1 AS `a``{_CODE}`",
    f"E'\\'{_CODE}'",
    f"e'\\\\\\'{_CODE}'",
    f"1E'\\'{_CODE}'",
    f"X'\\'{_CODE}'",
    f"B'{_CODE}'",
    f'b"{_CODE}"',
    f"N'{_CODE}'",
    f"R'\\''{_CODE}'",
    f"R'''a'{_CODE}'''",
    f'r"""a"{_CODE}"""',
    f"U&'{_CODE}'",
    f"Q'[it's{_CODE}]'",
    f"nq'!it's{_CODE}!'",
    f"$${_CODE}$$",
    f"$$ ' $ {_CODE}$$",
    f"$t$ ' $$ $u$ {_CODE}$t$",
    f"$1$ ' {_CODE}$1$",
    f'$é$ " {_CODE}$é$',
    f"1 -- ' /*{_CODE}",
    f"1 -- '{_CODE}\n",
    f'1 -- "{_CODE}\r\n, 2',
    f"1 -- a\r{_CODE}",
    f"1 /* '{_CODE} */",
    f"1 /* --{_CODE}\n */",
    f"1 /**{_CODE}**/",
    f"1 /*/{_CODE}/*/ */ */",
    f"1 /* /* a */{_CODE} */",
    f"1 /* /* /* /* /* ' */ */ */ */{_CODE} */",
    f"1 /* /*! a */{_CODE} */",
    f"1 AS #'a, '{_CODE}'",
    f"1 AS @@'a, '{_CODE}'",
    # These are not closed.
    f"'{_CODE}",
    f'"{_CODE}',
    f"`{_CODE}",
    f"E'\\'{_CODE}",
    f"E'{_CODE}\\",
    f"R'''{_CODE}''",
    f"Q'[{_CODE}'",
    f"$${_CODE}$",
    f"$t${_CODE}$u$",
    f"/*{_CODE}",
    f"/* /* */{_CODE}",
)
SHOWING = (
    f"1 {_CODE}",
    f"'\\'{_CODE} --'",
    f"'a'{_CODE}''",
    f"R'\\'{_CODE} --'",
    f"1 AS aE'\\'{_CODE}",
    f"1 AS a$t$ {_CODE} AND b$t$ = 1",
    f"1 AS a$$ {_CODE} AND b$$ = 1",
    f"1 AS é$1 {_CODE}",
    f"1 //* {_CODE} -- */",
    f"1 -- /*\n{_CODE}",
    f"1 -- '\r\n{_CODE}",
    f"1 /* ' */ {_CODE}",
    f"1 /* -- */ {_CODE}",
    f"1 /* /* */ ' */ {_CODE}",
    f"1 /* /* /* /* /* */ */ */ */ */ {_CODE} --'",
    f"1 /**/ {_CODE}",
    f'1 AS "/*" {_CODE} --*/',
    f"1 AS `a'` {_CODE} --'",
    f"$$ ' $$ {_CODE}",
    f"$$ $t$ $$ {_CODE} --$t$",
    f"Q'[']' {_CODE}",
    f"1 AS #' {_CODE}",
)
COMMENTS = tuple(text.removeprefix("1 ") for text in HIDING if text.startswith("1 /*"))
"""The texts that are a closed comment."""


def planned_for_long(sql: str) -> str:
    """Return a statement whose planning takes seconds, over a SELECT with a column `a`.

    Each level repeats its operand several times, and a filter is moved below all levels.
    """
    for _ in range(6):
        sql = f"SELECT a + a AS a FROM ({sql}) AS s"
    return f"SELECT a FROM ({sql}) AS s WHERE a > 1"
