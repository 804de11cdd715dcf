"""Random expressions of a kind, which the product and DuckDB compute alike.

Left out is what the languages define in other ways: quotients, overflow, texts of floating-point
numbers and of timestamps, averages of decimals, and lists without elements.
"""

from collections.abc import Callable, Mapping, Sequence

from tests.differential.typed.drawing import KINDS, NUMBERS, Column, Draw, Kind

CONSTANTS: Mapping[Kind, tuple[str, ...]] = {
    "int": ("0", "1", "2", "-1"),
    "big": ("CAST(2 AS BIGINT)", "CAST(40 AS BIGINT)"),
    "decimal": ("CAST('1.50' AS DECIMAL(9, 2))", "CAST('-1' AS DECIMAL(9, 2))"),
    "double": ("CAST(0.5 AS DOUBLE)", "CAST(1 AS DOUBLE)"),
    "text": ("'a'", "''", "'ab'"),
    "bool": ("true", "false"),
    "date": ("DATE '2024-01-31'", "DATE '2024-02-29'"),
    "stamp": ("TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP '2024-01-31 12:30:00'"),
    "time": ("TIME '12:30:00'", "TIME '00:00:00'"),
    "list": ("[1, 2]", "[1]"),
    "struct": (),
}
NAMES: Mapping[Kind, str] = {
    "int": "INT", "big": "BIGINT", "decimal": "DECIMAL(9, 2)", "double": "DOUBLE",
    "text": "VARCHAR", "bool": "BOOLEAN", "date": "DATE", "stamp": "TIMESTAMP", "time": "TIME",
}  # fmt: skip
_COMPARED = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
_EQUALS = ("=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
_PATTERNS = ("'a%'", "'%b'", "'_'", "'%'", "''", "'a_'")


def of_kind(draw: Draw, columns: Sequence[Column], kind: Kind, depth: int) -> str:
    """Draw an expression of a kind over the columns."""
    named = [each.name for each in columns if each.kind == kind]
    if kind == "struct" and not named:
        return "NULL"
    if depth <= 0 or draw.happens(0.35):
        constants = CONSTANTS[kind]
        if named and (not constants or draw.happens(0.8)):
            return draw.one(named)
        return draw.one(constants) if constants else "NULL"
    if draw.happens(0.25):
        return _common(draw, columns, kind, depth - 1)
    return _OF_KIND[kind](draw, columns, depth - 1)


def condition(draw: Draw, columns: Sequence[Column], depth: int) -> str:
    """Draw a condition that is not only a column or a constant, as a rule."""
    return _bool(draw, columns, depth)


def _common(draw: Draw, columns: Sequence[Column], kind: Kind, depth: int) -> str:
    first, second = (of_kind(draw, columns, kind, depth) for _ in range(2))
    match draw.number(0, 5 if kind not in ("list", "struct") else 2):
        case 0:
            return f"CASE WHEN {_bool(draw, columns, depth)} THEN {first} ELSE {second} END"
        case 1:
            return f"coalesce({first}, {second})"
        case 2:
            other = draw.one(KINDS[:-2])
            operand, value = (of_kind(draw, columns, other, depth) for _ in range(2))
            rest = draw.one(("", f" ELSE {second}"))
            return f"CASE {operand} WHEN {value} THEN {first}{rest} END"
        case 3:
            return f"nullif({first}, {second})"
        case 4 if kind != "bool":
            return f"{draw.one(('greatest', 'least'))}({first}, {second})"
        case _:
            return f"CAST({first} AS {NAMES[kind]})"


def _number(draw: Draw, columns: Sequence[Column], kind: Kind, depth: int) -> str:
    first = of_kind(draw, columns, kind, depth)
    match draw.number(0, 4):
        case 0:
            return f"({first} {draw.one('+-')} {of_kind(draw, columns, kind, depth)})"
        case 1:
            return f"(-{first})" if draw.happens(0.5) else f"abs({first})"
        case 2 if kind in ("int", "big"):
            return f"({first} % {draw.one(('2', '3'))})"
        case 3 if kind == "double":
            return f"({first} * {draw.one(CONSTANTS['int'])})"
        case 3 if kind == "int":
            return f"({first} {draw.one('&|')} {of_kind(draw, columns, kind, depth)})"
        case 2 | 3:
            return f"round({first})" if kind == "double" else f"coalesce({first}, 0)"
        case _:
            return f"CAST({_narrow(draw, columns, kind, depth)} AS {NAMES[kind]})"


def _narrow(draw: Draw, columns: Sequence[Column], kind: Kind, depth: int) -> str:
    """Draw a value that a cast to the kind keeps as it is."""
    from_kinds: Mapping[Kind, Sequence[Kind]] = {
        "int": ("bool",), "big": ("int", "bool"), "decimal": ("int",), "double": ("int", "big"),
    }  # fmt: skip
    return of_kind(draw, columns, draw.one(from_kinds[kind]), depth)


def _int(draw: Draw, columns: Sequence[Column], depth: int) -> str:
    match draw.number(0, 7):
        case 6:
            text = of_kind(draw, columns, "text", depth)
            return f"CAST(strpos({text}, {draw.one(CONSTANTS['text'])}) AS INT)"
        case 7:
            part = draw.one(("hour", "minute", "doy", "isodow", "week"))
            return f"CAST(extract({part} FROM {of_kind(draw, columns, 'stamp', depth)}) AS INT)"
        case 0:
            return f"CAST(length({of_kind(draw, columns, 'text', depth)}) AS INT)"
        case 1:
            part = draw.one(("year", "month", "day", "dow", "quarter"))
            value = of_kind(draw, columns, draw.one(("date", "stamp")), depth)
            return f"CAST(extract({part} FROM {value}) AS INT)"
        case 2:
            return f"({of_kind(draw, columns, 'list', depth)})[{draw.one('12')}]"
        case 3 if any(each.kind == "struct" for each in columns):
            return f"{of_kind(draw, columns, 'struct', 0)}['x']"
        case _:
            return _number(draw, columns, "int", depth)


def _text(draw: Draw, columns: Sequence[Column], depth: int) -> str:
    first = of_kind(draw, columns, "text", depth)
    match draw.number(0, 10):
        case 8:
            return f"{draw.one(('lpad', 'rpad'))}({first}, 3, 'b')"
        case 9:
            return f"split_part({first}, 'a', {draw.one('12')})"
        case 10:
            return f"repeat({first}, {draw.one('02')})"
        case 0:
            return f"({first} || {of_kind(draw, columns, 'text', depth)})"
        case 1:
            return f"{draw.one(('upper', 'lower', 'trim', 'reverse'))}({first})"
        case 2:
            return f"substr({first}, {draw.one('12')}, 1)"
        case 3:
            return f"replace({first}, 'a', {draw.one(CONSTANTS['text'])})"
        case 4:
            value = of_kind(draw, columns, draw.one(("int", "big", "bool")), depth)
            return f"CAST({value} AS VARCHAR)"
        case 5:
            return f"CAST(CAST({of_kind(draw, columns, 'date', depth)} AS DATE) AS VARCHAR)"
        case 6:
            return f"concat({first}, {of_kind(draw, columns, 'text', depth)})"
        case _ if any(each.kind == "struct" for each in columns):
            return f"{of_kind(draw, columns, 'struct', 0)}['y']"
        case _:
            return f"left({first}, 1)"


def _bool(draw: Draw, columns: Sequence[Column], depth: int) -> str:
    match draw.number(0, 11):
        case 10:
            return _found_in(draw, columns, depth - 1)
        case 11:
            return _across(draw, columns, depth - 1)
        case 0 | 1 if depth > 0:
            word = draw.one(("AND", "OR"))
            return f"({_bool(draw, columns, depth - 1)} {word} {_bool(draw, columns, depth - 1)})"
        case 2 if depth > 0:
            return f"(NOT {_bool(draw, columns, depth - 1)})"
        case 3:
            kind = draw.one(KINDS)
            return f"({of_kind(draw, columns, kind, depth - 1)} IS {draw.one(('', 'NOT '))}NULL)"
        case 4:
            word = draw.one(("TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN"))
            value = of_kind(draw, columns, "bool", depth - 1)
            if word == "UNKNOWN":
                return f"({value} IS NULL)"
            return f"({value} IS {word})"
        case 5:
            text = of_kind(draw, columns, "text", depth - 1)
            return f"({text} {draw.one(('', 'NOT '))}LIKE {draw.one(_PATTERNS)})"
        case 6:
            kind = draw.one(KINDS[:-2])
            values = [
                of_kind(draw, columns, kind, 0 if draw.happens(0.3) else -1)
                for _ in range(draw.number(1, 3))
            ]
            if draw.happens(0.2):
                values.append("NULL")
            value = of_kind(draw, columns, kind, depth - 1)
            return f"({value} {draw.one(('', 'NOT '))}IN ({', '.join(values)}))"
        case 7:
            kind = draw.one(KINDS[:-2])
            value, low, high = (of_kind(draw, columns, kind, depth - 1) for _ in range(3))
            return f"({value} {draw.one(('', 'NOT '))}BETWEEN {low} AND {high})"
        case 8 if draw.happens(0.3):
            return of_kind(draw, columns, "bool", min(depth - 1, 0))
        case _:
            return compared(draw, columns, columns, depth - 1)


def _found_in(draw: Draw, columns: Sequence[Column], depth: int) -> str:
    """Draw a condition on a part of a text or on an element of a list."""
    text = of_kind(draw, columns, "text", depth)
    match draw.number(0, 3):
        case 0:
            return f"starts_with({text}, {draw.one(CONSTANTS['text'])})"
        case 1:
            return f"({text} {draw.one(('', 'NOT '))}ILIKE {draw.one(_PATTERNS)})"
        case 2:
            return f"(strpos({text}, {draw.one(CONSTANTS['text'])}) {draw.one('=>')} 0)"
        case _:
            return f"({text} || 'b' LIKE '%' || {of_kind(draw, columns, 'text', 0)})"


def _across(draw: Draw, columns: Sequence[Column], depth: int) -> str:
    """Draw a comparison of values of two kinds, or with a text that becomes a value."""
    word = draw.one(_COMPARED)
    match draw.number(0, 4):
        case 0:
            kind: Kind = draw.one(("date", "stamp"))
            other: Kind = "stamp" if kind == "date" else "date"
            first = of_kind(draw, columns, kind, depth)
            return f"({first} {word} {of_kind(draw, columns, other, depth)})"
        case 1:
            return f"({of_kind(draw, columns, 'date', depth)} {word} '2024-01-31')"
        case 2:
            return f"({of_kind(draw, columns, 'stamp', depth)} {word} '2024-01-31 12:30:00')"
        case 3:
            first = of_kind(draw, columns, draw.one(NUMBERS), depth)
            values = ", ".join(
                of_kind(draw, columns, draw.one(NUMBERS), 0) for _ in range(draw.number(1, 3))
            )
            return f"({first} {draw.one(('', 'NOT '))}IN ({values}))"
        case _:
            kinds = [draw.one(NUMBERS) for _ in range(3)]
            value, low, high = (of_kind(draw, columns, kind, depth) for kind in kinds)
            return f"({value} BETWEEN {low} AND {high})"


def compared(draw: Draw, ours: Sequence[Column], theirs: Sequence[Column], depth: int) -> str:
    """Draw a comparison of a value over our columns with one over theirs."""
    kind = draw.one(KINDS)
    words = _EQUALS if kind in ("list", "struct", "bool") else _COMPARED
    other = draw.one(NUMBERS) if kind in NUMBERS and draw.happens(0.4) else kind
    first = of_kind(draw, ours, kind, depth)
    return f"({first} {draw.one(words)} {of_kind(draw, theirs, other, depth)})"


def _date(draw: Draw, columns: Sequence[Column], depth: int) -> str:
    match draw.number(0, 2):
        case 0:
            unit = draw.one(("'1 day'", "'1 month'"))
            return f"CAST({of_kind(draw, columns, 'date', depth)} + INTERVAL {unit} AS DATE)"
        case 1:
            unit = draw.one(("month", "year"))
            return f"CAST(date_trunc('{unit}', {of_kind(draw, columns, 'date', depth)}) AS DATE)"
        case _:
            return f"CAST({of_kind(draw, columns, 'stamp', depth)} AS DATE)"


def _stamp(draw: Draw, columns: Sequence[Column], depth: int) -> str:
    match draw.number(0, 2):
        case 0:
            unit = draw.one(("'1 day'", "'1 month'", "'90 minutes'"))
            value = of_kind(draw, columns, "stamp", depth)
            return f"({value} {draw.one('+-')} INTERVAL {unit})"
        case 1:
            unit = draw.one(("hour", "month", "year", "week"))
            value = of_kind(draw, columns, "stamp", depth)
            return f"CAST(date_trunc('{unit}', {value}) AS TIMESTAMP)"
        case _:
            return f"CAST({of_kind(draw, columns, 'date', depth)} AS TIMESTAMP)"


def _time(draw: Draw, columns: Sequence[Column], depth: int) -> str:
    return f"CAST({of_kind(draw, columns, 'stamp', depth)} AS TIME)"


def _list(draw: Draw, columns: Sequence[Column], depth: int) -> str:
    return f"[{of_kind(draw, columns, 'int', depth)}, {of_kind(draw, columns, 'int', depth)}]"


def _struct(draw: Draw, columns: Sequence[Column], depth: int) -> str:
    return of_kind(draw, columns, "struct", 0)


_OF_KIND: Mapping[Kind, Callable[[Draw, Sequence[Column], int], str]] = {
    "int": _int,
    "big": lambda draw, columns, depth: _number(draw, columns, "big", depth),
    "decimal": lambda draw, columns, depth: _number(draw, columns, "decimal", depth),
    "double": lambda draw, columns, depth: _number(draw, columns, "double", depth),
    "text": _text,
    "bool": _bool,
    "date": _date,
    "stamp": _stamp,
    "time": _time,
    "list": _list,
    "struct": _struct,
}
