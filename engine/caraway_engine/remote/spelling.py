"""Spells names, columns and values for a database, each with its kind and what is known of it."""

from dataclasses import replace

import pyarrow as pa

from caraway_core.loading.dialects import Dialect, Operation
from caraway_core.tables import RemoteColumn
from caraway_engine.remote import literals
from caraway_engine.remote.kinds import NotPushableError, Term, digits_of, kind_of


class SqlSpelling:
    """The spelling of one dialect.

    Its methods raise `NotPushableError` where the database may answer differently.
    """

    def __init__(self, dialect: Dialect) -> None:
        """Take the spelling, and the operations that are exact."""
        self._dialect = dialect

    @property
    def no_limit(self) -> str:
        """A limit that is none, where an offset needs a limit before it; else empty."""
        return self._dialect.no_limit

    @property
    def names_answers(self) -> bool:
        """True if the columns of an answer need names of their own."""
        return self._dialect.names_answers

    def need(self, operation: Operation) -> None:
        """Check that the database does something exactly as the engine does."""
        self._need(operation)

    def quoted(self, name: str) -> str:
        """Quote an identifier."""
        if "\0" in name:
            raise NotPushableError("a name with NUL")
        quote = self._dialect.quote
        if self._dialect.backslash:
            name = name.replace("\\", self._dialect.backslash)
        return quote + name.replace(quote, quote * 2) + quote

    def column(self, found: RemoteColumn) -> Term:
        """Return a column of the table itself."""
        term = self._typed(self.quoted(found.name), found.type, found)
        return replace(term, column=found)

    def of_type(self, sql: str, type_: pa.DataType) -> Term:
        """Return an SQL expression whose result has a type of the engine."""
        return self._typed(sql, type_, RemoteColumn("", type_, is_comparable=True))

    def sameness(self, found: RemoteColumn) -> str | None:
        """Return the template of what is equal for equal values of a column; None: there is none.

        Values of two tables may have two collations.
        """
        term = self.column(found)
        if not term.kind or not term.is_exact or term.is_text:
            return None
        if term.kind == "text":
            return self._dialect.bytes or f"{{}}{self._dialect.collation}"
        return None if term.is_prefiltered else "{}"

    def literal(self, value: object) -> Term:
        """Return a Python value as an SQL literal."""
        return literals.spelled(value, self._dialect)

    def _need(self, operation: str) -> None:
        if operation not in self._dialect.exact:
            raise NotPushableError(operation)

    def _typed(self, sql: str, type_: pa.DataType, found: RemoteColumn) -> Term:
        kind = kind_of(type_) if found.is_comparable else ""
        digits, scale = digits_of(type_)
        known = kind if kind in self._dialect.kinds else ""
        is_prefiltered = known in self._dialect.prefiltered
        return Term(
            sql,
            known,
            digits=digits,
            scale=scale,
            is_text=found.is_text,
            is_prefiltered=is_prefiltered,
            is_single=known == "double" and type_ != pa.float64(),
        )

    def _compare_exactly(self, term: Term) -> None:
        if term.is_prefiltered:
            raise NotPushableError("values that compare otherwise")

    def _cast(self, name: str, sql: str) -> str:
        if name not in self._dialect.casts:
            raise NotPushableError(f"a cast to {name}")
        return self._dialect.casts[name].format(sql)

    def _fit(self, *terms: Term) -> None:
        """Check that decimals have a common type in the database."""
        most = self._dialect.most_digits
        if most is None or terms[0].kind != "decimal":
            return
        if max(each.digits for each in terms) + max(each.scale for each in terms) > most:
            raise NotPushableError("decimals of many digits")
