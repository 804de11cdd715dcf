"""Random conditions and values of MERGE: as SQL, and as a model computes them over two rows."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]
NAMES = ("n", "m", "v", "d")
"""The columns that clauses set."""

DEPTH = 2
"""How deep choices and functions are in others."""


@dataclass(frozen=True, slots=True)
class Part:
    """A condition or a value, as SQL and over two rows; None is NULL."""

    sql: str
    of: Callable[[Values, Values], Any]


def over(sql: str, work: Callable[..., Any], *names: str) -> Part:
    """Return a part that is NULL where one of the columns is."""

    def value(t: Values, s: Values) -> Any:
        found = [(t if side == "t" else s)[name] for side, name in (n.split(".") for n in names)]
        return None if None in found else work(*found)

    return Part(sql, value)


@dataclass(frozen=True, slots=True)
class Parts:
    """Draws parts. Without doubles where a database has none; alone without a row of the source."""

    drawn: random.Random
    is_alone: bool
    has_doubles: bool

    def condition(self, depth: int = DEPTH) -> Part:
        """Return a condition."""
        one, other = (self._test(depth) for _ in "12")
        match self.drawn.randrange(4):
            case 0:
                return Part(f"{one.sql} AND {other.sql}", _either(all, one, other))
            case 1:
                return Part(f"({one.sql} OR {other.sql})", _either(any, one, other))
        return one

    def value(self, column: str, depth: int = DEPTH) -> Part:
        """Return a value of a column."""
        if depth and self.drawn.random() < 0.4 and (column != "d" or self.has_doubles):
            return self._computed(column, depth - 1)
        plain = {"v": self._of_v, "d": self._of_d}.get(column, self._of_n)()
        # An operator has no type for a NULL alone.
        return self.drawn.choice([each for each in plain if depth == DEPTH or each.sql != "NULL"])

    def _test(self, depth: int) -> Part:
        n = self.drawn.randrange(-4, 5)
        found = [
            over(f"t.n > {n}", lambda a: a > n, "t.n"),
            over(f"t.n + t.m <= {n}", lambda a, b: a + b <= n, "t.n", "t.m"),
            over("t.v = 'a'", lambda a: a == "a", "t.v"),
            Part("t.m IS NULL", lambda t, _s: t["m"] is None),
            Part("t.n IS NOT NULL", lambda t, _s: t["n"] is not None),
            over(f"t.n IN ({n}, 2)", lambda a: a in (n, 2), "t.n"),
            Part(f"CASE t.n WHEN {n} THEN 1 ELSE t.m END > 0",
                 lambda t, _s: t["n"] == n or (t["m"] is not None and t["m"] > 0)),
        ]  # fmt: skip
        if not self.is_alone:
            found += [
                over("t.n < s.y", lambda a, b: a < b, "t.n", "s.y"),
                over("t.v <> s.w", lambda a, b: a != b, "t.v", "s.w"),
                over("NOT (t.m = s.y)", lambda a, b: a != b, "t.m", "s.y"),
                over(f"s.y >= {n}", lambda a: a >= n, "s.y"),
                over("s.w = 'b'", lambda a: a == "b", "s.w"),
            ]
        if self.has_doubles:
            found += [over(f"t.d > {n}.5", lambda a: a > float(f"{n}.5"), "t.d")]
        if self.has_doubles and not self.is_alone:
            found += [
                over("t.d <= s.z", lambda a, b: a <= b, "t.d", "s.z"),
                over("t.d * 2.5 > -s.z", lambda a, b: a * 2.5 > -b, "t.d", "s.z"),
            ]
        if depth and self.drawn.random() < 0.3:
            one = self.value(self.drawn.choice("nv"), depth - 1)
            return Part(f"({one.sql}) IS NULL", lambda t, s: one.of(t, s) is None)
        return self.drawn.choice(found)

    def _of_n(self) -> list[Part]:
        n = self.drawn.randrange(-4, 5)
        found = [
            Part("NULL", lambda _t, _s: None), Part(f"{n}", lambda _t, _s: n),
            over("t.m", int, "t.m"), over("t.n", int, "t.n"),
            over(f"t.n * {n} - t.m", lambda a, b: a * n - b, "t.n", "t.m"),
            over("t.m + 1", lambda a: a + 1, "t.m"),
        ]  # fmt: skip
        if not self.is_alone:
            found += [
                over("s.y", int, "s.y"), over("t.n + s.y", lambda a, b: a + b, "t.n", "s.y"),
                over("(s.y - t.m) * 2", lambda a, b: (a - b) * 2, "s.y", "t.m"),
            ]  # fmt: skip
        return found

    def _of_v(self) -> list[Part]:
        found = [
            Part("NULL", lambda _t, _s: None), Part("'a'", lambda _t, _s: "a"),
            over("t.v", str, "t.v"),
        ]  # fmt: skip
        return found if self.is_alone else [*found, over("s.w", str, "s.w")]

    def _of_d(self) -> list[Part]:
        n = self.drawn.randrange(-4, 5)
        found = [
            Part("NULL", lambda _t, _s: None), Part("0.1", lambda _t, _s: 0.1),
            over("t.d", float, "t.d"),
        ]  # fmt: skip
        if self.has_doubles:
            found += [
                over(f"t.d * {n}.7", lambda a: a * float(f"{n}.7"), "t.d"),
                over("t.d - t.n", lambda a, b: a - b, "t.d", "t.n"),
                over("-t.d", lambda a: -a, "t.d"), over("abs(t.d)", abs, "t.d"),
            ]  # fmt: skip
        if self.has_doubles and not self.is_alone:
            found += [over("t.d + s.z", lambda a, b: a + b, "t.d", "s.z")]
        return found if self.has_doubles else found[:1]

    def _computed(self, column: str, depth: int) -> Part:
        """Return a choice between two values of a column, or a function of them."""
        one, other = (self.value(column, depth) for _ in "12")
        found = [_case(self.condition(depth), one, other), _coalesce(one, other)]
        if column == "v":
            found += [Part(f"{one.sql} || {other.sql}", _strict(lambda a, b: a + b, one, other))]
        elif column != "d":
            found += [
                Part(f"greatest({one.sql}, {other.sql})", _extreme(max, one, other)),
                Part(f"least({one.sql}, {other.sql})", _extreme(min, one, other)),
                Part(f"abs({one.sql})", _strict(abs, one)),
                Part(f"-({one.sql})", _strict(lambda a: -a, one)),
                Part(f"nullif({one.sql}, {other.sql})", lambda t, s: (
                    None if (a := one.of(t, s)) == other.of(t, s) else a
                )),
            ]  # fmt: skip
            if self.has_doubles:
                text = self.value("v", 0)
                found += [Part(f"length({text.sql})", _strict(len, text))]
        return self.drawn.choice(found)


def _either(work: Callable[..., bool], *parts: Part) -> Callable[[Values, Values], Any]:
    return lambda t, s: work(each.of(t, s) is True for each in parts)


def _case(test: Part, then: Part, other: Part) -> Part:
    return Part(
        f"CASE WHEN {test.sql} THEN {then.sql} ELSE {other.sql} END",
        lambda t, s: (then if test.of(t, s) is True else other).of(t, s),
    )


def _coalesce(*parts: Part) -> Part:
    def value(t: Values, s: Values) -> Any:
        return next((found for each in parts if (found := each.of(t, s)) is not None), None)

    return Part(f"coalesce({', '.join(each.sql for each in parts)})", value)


def _strict(work: Callable[..., Any], *parts: Part) -> Callable[[Values, Values], Any]:
    def value(t: Values, s: Values) -> Any:
        found = [each.of(t, s) for each in parts]
        return None if None in found else work(*found)

    return value


def _extreme(work: Callable[..., Any], *parts: Part) -> Callable[[Values, Values], Any]:
    def value(t: Values, s: Values) -> Any:
        return work((each for part in parts if (each := part.of(t, s)) is not None), default=None)

    return value
