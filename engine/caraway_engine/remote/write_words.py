"""Generates SQL of conditions and new values of statements that write.

A database answers them whole, or with an error that changes nothing. So more is sent than for a
query, of which the engine computes a part again: choices, some functions, and doubles. A comparison
with NaN, of which the engine knows several kinds, fails in the database.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce

import pyarrow as pa

from caraway_core.loading import registry
from caraway_core.loading.dialects import WriteOperation
from caraway_engine.remote.kinds import NotPushableError, Term, digits_of
from caraway_engine.remote.words import ARITHMETIC, COMPARISONS, MOST_TEXT, SqlWriter

_writers: dict[str, "WriteSqlWriter"] = {}
_SIGNED = ("int", "decimal", "double")


def of_reader(name: str) -> "WriteSqlWriter":
    """Return the writer of statements that write to the databases of a reader."""
    if name not in _writers:
        _writers[name] = WriteSqlWriter(registry.database_reader(name).dialect)
    return _writers[name]


class WriteSqlWriter(SqlWriter):
    """Writes expressions that may fail in the database where it would answer otherwise."""

    def compared(self, name: str, left: Term, right: Term) -> Term:
        if not left.kind == right.kind == "double" or name not in COMPARISONS:
            return super().compared(name, *self._aligned(left, right))
        self._need_write("double")
        cases = [
            f"WHEN {is_nan.format(each.sql)} THEN {self._dialect.fails.format(each.sql)}"
            for each in (left, right)
            if (is_nan := self._dialect.is_nan) and not each.is_literal
        ]
        test = f"{left.sql} {COMPARISONS[name]} {right.sql}"
        guarded = f"(CASE {' '.join(cases)} ELSE ({test}) END)" if cases else f"({test})"
        return Term(_short(guarded), "bool")

    def among(self, value: Term, options: list[Term]) -> Term:
        value, *options = self._aligned(value, *options)
        return super().among(value, options)

    def _aligned(self, *terms: Term) -> list[Term]:
        """Return terms with one type, if they are decimals of a database that needs that."""
        if not self._dialect.aligned or any(each.kind != "decimal" for each in terms):
            return list(terms)
        self._fit(*terms)
        digits, scale = (max(getattr(t, of) for t in terms) for of in ("digits", "scale"))
        spelled = partial(self._dialect.aligned.format, precision=digits + scale, scale=scale)
        return [replace(each, sql=spelled(each.sql), digits=digits, scale=scale) for each in terms]

    def computed(self, name: str, left: Term, right: Term) -> Term:
        if not left.kind == right.kind == "double" or name not in ARITHMETIC:
            return super().computed(name, left, right)
        self._need_write("double")
        if left.is_single or right.is_single:
            raise NotPushableError("numbers of 32 bits, which are computed as those of 64")
        return Term(_short(f"({left.sql} {ARITHMETIC[name]} {right.sql})"), "double")

    def cast(self, term: Term, to: pa.DataType) -> Term:
        if term.kind == "int" and to == pa.float64() and "double" in self._dialect.writes:
            return Term(self._cast("double", term.sql), "double")
        if term.kind == "double" and to == pa.float64() and not term.is_single:
            return term
        return super().cast(term, to)

    def chosen(self, cases: Sequence[tuple[Term, Term | None]], other: Term | None) -> Term:
        self._need_write("case")
        values = [*(value for _, value in cases), other]
        found = [each for each in values if each is not None]
        if not found or any(not one.kind or one.kind != found[0].kind for one in found):
            raise NotPushableError("a choice between values of several kinds")
        if any(test.kind != "bool" or not test.is_exact for test, _ in cases):
            raise NotPushableError("a choice by a condition that is not exact")
        if any(not each.is_exact or each.is_text for each in found):
            raise NotPushableError("a choice of values that are not exact")
        whens = (f"WHEN {test.sql} THEN {value.sql if value else 'NULL'}" for test, value in cases)
        otherwise = other.sql if other else "NULL"
        return Term(
            _short(f"(CASE {' '.join(whens)} ELSE {otherwise} END)"),
            found[0].kind,
            digits=max(each.digits for each in found),
            scale=max(each.scale for each in found),
            is_single=any(each.is_single for each in found),
            is_prefiltered=any(each.is_prefiltered for each in found),
        )

    def called(self, name: str, operands: Sequence[Term]) -> Term:
        match name, operands:
            case "nullif", [left, right]:
                return self.chosen([(self.compared("equal", left, right), None)], left)
            case (("greatest" | "least"), [_, *_]):
                sign = "gt" if name == "greatest" else "lt"
                return reduce(lambda left, right: self._extreme_of(sign, left, right), operands)
            case (("abs" | "negate"), [one]):
                return self._signed(name, one)
            case "nanvl", [one]:
                return one  # A comparison fails for every NaN.
            case (("concat" | "str_concat"), [_, *_]):
                parts = (
                    operands if name == "str_concat" else [self._unless_null(t) for t in operands]
                )
                return reduce(self._joined, parts)
            case "character_length", [one]:
                self._need_write("length")
                self._be_text(one)
                digits, _ = digits_of(pa.int32())
                return Term(_short(self._dialect.length.format(one.sql)), "int", digits=digits)
        return super().called(name, operands)

    def _extreme_of(self, sign: str, left: Term, right: Term) -> Term:
        """Return the greater or lesser value; NULL is neither."""
        if left.kind == "double":
            raise NotPushableError("the greater of 0.0 and -0.0")
        is_right = self.both(
            "or", self.null_test(left, is_null=True), self.compared(sign, right, left)
        )
        return self.chosen([(is_right, right)], left)

    def _signed(self, name: str, one: Term) -> Term:
        self._need_write("double" if one.kind == "double" else "case")
        if one.kind not in _SIGNED or not one.is_exact:
            raise NotPushableError(name)
        wide = self._dialect.wide if one.kind == "int" else "{}"
        sql = (f"(- {wide})" if name == "negate" else f"abs({wide})").format(one.sql)
        if one.kind == "int" and self._dialect.checked:
            sql = self._dialect.checked.format(sql)
        return replace(one, sql=_short(sql), column=None, is_literal=False)

    def _unless_null(self, one: Term) -> Term:
        empty = self.literal("")
        return self.chosen([(self.null_test(one, is_null=True), empty)], one)

    def _joined(self, left: Term, right: Term) -> Term:
        self._need_write("concat")
        self._be_text(left)
        self._be_text(right)
        sql = _short(self._dialect.concat.format(left.sql, right.sql))
        is_prefiltered = left.is_prefiltered or right.is_prefiltered
        return Term(sql, "text", is_prefiltered=is_prefiltered)

    def _be_text(self, one: Term) -> None:
        if one.kind != "text" or one.is_text or not one.is_exact:
            raise NotPushableError("a value that is no text")

    def _need_write(self, operation: WriteOperation) -> None:
        if operation not in self._dialect.writes:
            raise NotPushableError(operation)


def _short(sql: str) -> str:
    if len(sql) > MOST_TEXT:
        raise NotPushableError("a long expression")
    return sql
