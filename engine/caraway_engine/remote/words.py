"""Generates SQL for expressions that a database evaluates exactly as the engine does.

The dialect of the database lists the exact operations. Everything else raises `NotPushableError`
and stays with the engine. No dialect can list comparisons of floating-point numbers (NaN and -0.0
differ), divisions (other digits), functions of text and time, and casts that may fail or round.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from caraway_core.loading import registry
from caraway_core.loading.dialects import Dialect
from caraway_engine.remote.kinds import (
    MOST_DIGITS,
    NotPushableError,
    Term,
    are_comparable,
    digits_of,
    kind_of,
)
from caraway_engine.remote.spelling import SqlSpelling

types = pa.types
COMPARISONS = {"equal": "=", "not_equal": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*"}
_SAFE_DIGITS = 18
"""Integers with this number of digits have 64 bits."""
MOST_TEXT = 4_000
"""The most characters of arithmetic: some casts repeat their operand."""
_AVERAGE_SCALE = 4
_HALF = 32
_PLAIN_PATTERN = re.compile(r"[^\\]*")


_writers: dict[str, "SqlWriter"] = {}


class WritersOfReaders(Protocol):
    """Returns the writer for the databases of a reader, as `of_reader` does."""

    def __call__(self, name: str, /) -> "SqlWriter": ...


def of_reader(name: str) -> "SqlWriter":
    """Return the writer for the databases of a reader; one that declares none only reads rows."""
    if name not in _writers:
        use(name, registry.database_reader(name).dialect)
    return _writers[name]


def use(name: str, dialect: Dialect) -> None:
    """Write SQL for the databases of a reader in this dialect from now on."""
    _writers[name] = SqlWriter(dialect)


class SqlWriter(SqlSpelling):
    """Writes expressions in one dialect.

    Its methods raise `NotPushableError` where the database may answer differently.
    """

    def compared(self, name: str, left: Term, right: Term) -> Term:
        """Return a comparison; a floating-point comparison includes all rows that may match."""
        if name not in COMPARISONS or not are_comparable(left.kind, right.kind):
            raise NotPushableError(name)
        if not (left.is_exact and right.is_exact):
            raise NotPushableError("a comparison of a condition that is not exact")
        sign = COMPARISONS[name]
        if left.kind == "double":
            return self._compared_doubles(sign, left, right)
        is_exact = not (left.is_prefiltered or right.is_prefiltered)
        if not is_exact and sign in ("=", "<>") and (same := self._same_bytes(left, [right])):
            return same if sign == "=" else self.negated(same)
        if not is_exact and (sign == "<>" or (left.kind == "text" and sign != "=")):
            raise NotPushableError(name)
        self._fit(left, right)
        # An equality with a literal can use any index. Two columns may have two collations.
        has_one = sign in ("=", "<>") and (left.is_literal or right.is_literal)
        collation = "" if has_one or left.kind != "text" else self._dialect.collation
        return Term(f"({left.sql}{collation} {sign} {right.sql})", "bool", is_exact)

    def both(self, name: str, left: Term, right: Term) -> Term:
        """Return AND or OR."""
        if name not in ("and", "or") or left.kind != "bool" or right.kind != "bool":
            raise NotPushableError(name)
        return Term(
            f"({left.sql} {name.upper()} {right.sql})", "bool", left.is_exact and right.is_exact
        )

    def negated(self, term: Term) -> Term:
        """Return NOT. An inexact condition is refused, because its negation would drop rows."""
        if term.kind != "bool" or not term.is_exact:
            raise NotPushableError("not")
        return Term(f"(NOT {term.sql})", "bool")

    def null_test(self, term: Term, *, is_null: bool) -> Term:
        """Return IS NULL or IS NOT NULL, which work for every type."""
        if not term.is_exact:
            raise NotPushableError("is null")
        return Term(f"({term.sql} IS {'' if is_null else 'NOT '}NULL)", "bool")

    def alike(self, value: Term, pattern: str) -> Term:
        """Return LIKE with a pattern without escapes."""
        self.need("like")
        self._compare_exactly(value)
        if value.kind != "text" or not _PLAIN_PATTERN.fullmatch(pattern):
            raise NotPushableError("like")
        return Term(f"({value.sql} LIKE {self.literal(pattern).sql})", "bool")

    def among(self, value: Term, options: list[Term]) -> Term:
        """Return IN with a list."""
        if (
            not options
            or value.kind in ("", "double")
            or not all(are_comparable(each.kind, value.kind) for each in options)
            or not all(each.is_exact for each in (value, *options))
        ):
            raise NotPushableError("in")
        self._fit(value, *options)
        is_exact = not any(each.is_prefiltered for each in (value, *options))
        if not is_exact and (same := self._same_bytes(value, options)):
            return same
        has_one = value.kind != "text" or all(each.is_literal for each in options)
        first = value.sql if has_one else f"{value.sql}{self._dialect.collation}"
        return Term(f"({first} IN ({', '.join(each.sql for each in options)}))", "bool", is_exact)

    def computed(self, name: str, left: Term, right: Term) -> Term:
        """Return arithmetic on integers and decimals, which both sides compute exactly."""
        if name == "bitwise_shift_right" and self._is_half(left, right):
            return replace(left, sql=self._cast("high", left.sql), column=None)
        if name == "bitwise_shift_right" and left.kind == right.kind == "int":
            self.need("shift int")
            return replace(
                left, column=None, sql=f"({left.sql} >> {self._cast('shift', right.sql)})"
            )
        if name not in ARITHMETIC or left.kind != right.kind:
            raise NotPushableError(name)
        self._need(f"{name} {left.kind}")
        wide = self._dialect.wide if left.kind == "int" else "{}"
        sql = f"({wide.format(left.sql)} {ARITHMETIC[name]} {wide.format(right.sql)})"
        if name == "multiply":
            digits, scale = left.digits + right.digits, left.scale + right.scale
        else:
            digits, scale = max(left.digits, right.digits) + 1, max(left.scale, right.scale)
        is_long = digits > _SAFE_DIGITS or wide != "{}"
        if left.kind == "int" and is_long and self._dialect.checked:
            sql = self._dialect.checked.format(sql)
        if len(sql) > MOST_TEXT:
            raise NotPushableError("a long expression")
        if left.kind == "decimal" and digits + scale > MOST_DIGITS:
            raise NotPushableError("decimals of many digits")
        return Term(sql, left.kind, digits=digits, scale=scale)

    def chosen(self, cases: Sequence[tuple[Term, Term | None]], other: Term | None) -> Term:
        """Return the value of the first condition that holds; None is NULL."""
        raise NotPushableError("a choice")

    def called(self, name: str, operands: Sequence[Term]) -> Term:
        """Return another function of values."""
        raise NotPushableError(name)

    def cast(self, term: Term, to: pa.DataType) -> Term:
        """Return a cast that does not round, and fails only where the engine's cast fails too."""
        kind = kind_of(to)
        digits, scale = digits_of(to)
        if term.kind == kind == "int":
            self.need("cast int")
            sql = self._cast(_integer(to), term.sql)
            if len(sql) > MOST_TEXT:
                raise NotPushableError("a long expression")
            return Term(sql, "int", digits=min(digits, term.digits or digits))
        if term.kind == "uint" and kind in ("int", "uint"):
            return self._without_sign(term, to)
        if term.kind in ("int", "decimal") and kind == "decimal":
            self.need("cast decimal")
            if digits < term.digits or scale < term.scale:
                raise NotPushableError("a cast that may fail or round")
            return Term(self._cast("decimal", term.sql), "decimal", digits=digits, scale=scale)
        if term.kind in ("int", "decimal") and types.is_float64(to):
            self.need("cast double")
            return Term(self._cast("double", term.sql), "double", is_finite=True)
        if term.kind == kind == "text":
            return term
        raise NotPushableError(f"a cast to {to}")

    def ordered(self, term: Term, *, descending: bool, nulls_first: bool) -> str:
        """Return one key of ORDER BY."""
        self.need("sort")
        if term.kind in ("", "double"):
            raise NotPushableError("order by")
        self._compare_exactly(term)
        collation = self._dialect.collation if term.kind == "text" else ""
        key = f"{term.sql}{collation} {'DESC' if descending else 'ASC'}"
        if self._dialect.has_nulls_order:
            return f"{key} NULLS {'FIRST' if nulls_first else 'LAST'}"
        return f"{term.sql} IS NULL {'DESC' if nulls_first else 'ASC'}, {key}"

    def sent(self, term: Term, type_: pa.DataType, *, is_group: bool = False) -> str:
        """Return a column of an answer, converted to a form that the driver has for its type.

        The columns of rows that are no groups may be unchecked.
        """
        if not is_group and (unchecked := self._unchecked(term, type_)):
            return unchecked
        is_decimal = types.is_decimal(type_) and self._dialect.sends_decimals_as_text
        if term.is_text or is_decimal:
            return self._cast("texts" if types.is_list(type_) else "text", term.sql)
        if types.is_integer(type_) and term.kind == "int" and not self._is_right(term, type_):
            return self._cast(_integer(type_), term.sql)
        if types.is_float32(type_) and "float" in self._dialect.casts:
            return self._cast("float", term.sql)
        return term.sql

    def count(self, argument: Term | None, only: str, *, is_distinct: bool = False) -> Term:
        """Return count; without an argument, that of all rows."""
        self.need("count distinct" if is_distinct else "count")
        if is_distinct and argument is not None:
            self._compare_exactly(argument)
        what = f"{'DISTINCT ' if is_distinct else ''}{argument.sql}" if argument else "*"
        return self.of_type(f"count({what}){only}", pa.int64())

    def sum(self, argument: Term, only: str) -> Term:
        """Return sum. Those of doubles are of numbers that were integers or decimals."""
        is_short = argument.kind == "decimal" and argument.digits + argument.scale <= _SAFE_DIGITS
        if not (is_short and "sum short decimal" in self._dialect.exact):
            self._need(f"sum {argument.kind}")
        sql = f"sum({argument.sql}){only}"
        if argument.kind == "int":
            return self.of_type(self._cast("int64", sql), pa.int64())
        if argument.kind == "uint":
            return self.of_type(self._cast("uint64", sql), pa.uint64())
        if argument.kind == "decimal":
            digits = MOST_DIGITS - argument.scale
            return Term(sql, "decimal", digits=digits, scale=argument.scale)
        if argument.is_finite:
            return Term(sql, "double", is_finite=True)
        raise NotPushableError("sum")

    def average(self, argument: Term, only: str) -> Term:
        """Return avg."""
        self._need(f"avg {argument.kind}")
        if argument.kind == "double" and argument.is_finite:
            return Term(f"avg({argument.sql}){only}", "double", is_finite=True)
        if argument.kind != "decimal":
            raise NotPushableError("avg")
        # The engine returns four more digits, and truncates the rest.
        scale = argument.scale + _AVERAGE_SCALE
        sql = (
            f"(div(sum({argument.sql}){only} * 1{'0' * scale}, "
            f"nullif(count({argument.sql}){only}, 0)) * 0.{'0' * (scale - 1)}1)"
        )
        return Term(sql, "decimal", digits=MOST_DIGITS - scale, scale=scale)

    def extreme(self, name: str, argument: Term, only: str) -> Term:
        """Return min or max."""
        self.need("extreme")
        self._compare_exactly(argument)
        if argument.kind in ("", "bool", "double"):
            raise NotPushableError(name)
        collation = self._dialect.collation if argument.kind == "text" else ""
        return Term(
            f"{name}({argument.sql}{collation}){only}",
            argument.kind,
            digits=argument.digits,
            scale=argument.scale,
        )

    def _is_half(self, left: Term, right: Term) -> bool:
        """Return whether an integer loses its lower 32 bits, as guards of sums have it."""
        has_form = "high" in self._dialect.casts and left.kind in ("int", "uint")
        return has_form and right.is_literal and right.sql == self.literal(_HALF).sql

    def _is_right(self, term: Term, type_: pa.DataType) -> bool:
        """Return whether the reader itself checks that the values have the type."""
        return (
            self._dialect.checks_columns and term.column is not None and term.column.type == type_
        )

    def _unchecked(self, term: Term, type_: pa.DataType) -> str:
        """Return the column that rows have in place of this one, or nothing."""
        found = term.column
        if found is None or not found.unchecked or found.type != type_:
            return ""
        return self.quoted(found.unchecked) if term.sql == self.quoted(found.name) else ""

    def _without_sign(self, term: Term, to: pa.DataType) -> Term:
        self.need("cast int")
        digits, _ = digits_of(to)
        if digits < term.digits:
            raise NotPushableError("a cast that may fail")
        if kind_of(to) == "uint":
            return replace(term, digits=digits, column=None)
        return Term(self._cast(_integer(to), term.sql), "int", digits=digits)

    def _same_bytes(self, value: Term, options: Sequence[Term]) -> Term | None:
        """Return whether a text is one of others, byte by byte; None if it cannot be said."""
        template = self._dialect.bytes
        if value.kind != "text" or not template:
            return None
        texts = ", ".join(each.sql for each in options)
        content = ", ".join(template.format(each.sql) for each in options)
        # The first test can use an index.
        sql = f"({value.sql} IN ({texts}) AND {template.format(value.sql)} IN ({content}))"
        return Term(sql, "bool")

    def _compared_doubles(self, sign: str, left: Term, right: Term) -> Term:
        """Compare so that no row is missed: the engine treats NaN and -0.0 differently."""
        if sign == "<>":
            raise NotPushableError("not_equal")
        wide = sign if sign == "=" else sign[0] + "="
        tests = [f"{left.sql} {wide} {right.sql}"]
        if is_nan := self._dialect.is_nan:
            tests += [is_nan.format(each.sql) for each in (left, right)]
        return Term(f"({' OR '.join(tests)})", "bool", is_exact=False)


def _integer(type_: pa.DataType) -> str:
    if not types.is_signed_integer(type_):
        raise NotPushableError("unsigned numbers")
    return f"int{type_.bit_width}"
