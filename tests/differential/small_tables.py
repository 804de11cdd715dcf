"""Small tables with NULLs, for the corpus and the generated statements."""

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.differential import datasets
from tests.differential.datasets import SEVERAL, SINGLE, Dataset

UTC = dt.UTC
_NAMES = ("Ada", "Bo", "Cy", "Dee", "Eve", "Fay", "Gus", "Hal", "Ida", "Jo")

VIEWS = {
    "v_active": "SELECT id, name, dept_id, salary FROM emp WHERE active",
    "v_dept_pay": "SELECT dept_id, sum(salary) AS pay, count(*) AS n FROM emp GROUP BY dept_id",
    "v_named": "SELECT pay, n, d.name AS dept FROM v_dept_pay p JOIN dept d ON p.dept_id = d.id",
}


def build(folder: Path) -> Dataset:
    """Write all tables into the folder, most of them as several files."""
    for name, (make, spread, group_rows) in _TABLES.items():
        datasets.write(folder / name, make(), spread, group_rows)
    return Dataset("small", folder, VIEWS)


def _emp() -> pa.Table:
    chance = random.Random(1)
    numbers = range(1, 61)
    return pa.table({
        "id": pa.array(numbers, pa.int64()),
        "name": pa.array([None if n % 17 == 0 else _NAMES[n % 10] for n in numbers]),
        "dept_id": pa.array([
            chance.choice((1, 2, 2, 3, 4, 99, None)) for _ in numbers
        ], pa.int32()),
        "salary": pa.array([
            None if n % 11 == 0 else Decimal(chance.randrange(100_000, 900_000)) / 100
            for n in numbers
        ], pa.decimal128(10, 2)),
        "bonus": pa.array([None if n % 4 == 0 else chance.randrange(800) / 8 for n in numbers]),
        "hired": pa.array([
            None if n % 13 == 0 else dt.date(2020, 1, 1) + dt.timedelta(chance.randrange(900))
            for n in numbers
        ]),
        "manager_id": pa.array([None if n < 4 else n // 3 for n in numbers], pa.int64()),
        "active": pa.array([(None, True, False, True)[n % 4] for n in numbers]),
        "grade": pa.array([None if n % 9 == 0 else n % 5 for n in numbers], pa.uint8()),
    })  # fmt: skip


def _dept() -> pa.Table:
    return pa.table({
        "id": pa.array([1, 2, 3, 4, 5, 6, None], pa.int32()),
        "name": ["Ops", "Sales", "Research", None, "Sales", "Empty", "Nowhere"],
        "budget": pa.array([*map(Decimal, ("1000.50", "2500.00", "0.00")), None, Decimal("-12.25"),
                            Decimal("2500.00"), Decimal(7)], pa.decimal128(12, 2)),
        "opened": pa.array([dt.date(2019, 1, n) for n in range(1, 7)] + [None]),
    })  # fmt: skip


def _sales() -> pa.Table:
    chance = random.Random(2)
    numbers = range(400)
    start = dt.datetime(2024, 1, 1)
    return pa.table({
        "id": pa.array(numbers, pa.int64()),
        "emp_id": pa.array([
            None if n % 19 == 0 else chance.choice((7, 7, 7, chance.randrange(1, 80)))
            for n in numbers
        ], pa.int64()),
        "item": pa.array([chance.choice(("pen", "ink", "cap", "Pen", "", None)) for _ in numbers]),
        "qty": pa.array([
            None if n % 7 == 0 else chance.randrange(-2, 12) for n in numbers
        ], pa.int32()),
        "price": pa.array([
            None if n % 23 == 0 else Decimal(chance.randrange(1, 99_999)) / 100 for n in numbers
        ], pa.decimal128(8, 2)),
        "weight": pa.array([
            None if n % 5 == 0 else chance.randrange(1, 4000) / 16 for n in numbers
        ]),
        "sold_at": pa.array([
            None if n % 29 == 0 else start + dt.timedelta(minutes=chance.randrange(120_000))
            for n in numbers
        ], pa.timestamp("us")),
        "sold_on": pa.array([dt.date(2024, 1, 1) + dt.timedelta(n % 90) for n in numbers]),
        "region": pa.array([
            "north" if n % 10 else ("south", "east", None)[n % 3] for n in numbers
        ]),
    })  # fmt: skip


def _numbers() -> pa.Table:
    columns: dict[str, pa.Array] = {"id": pa.array(range(20), pa.int64())}
    for bits in (8, 16, 32, 64):
        high = 2 ** (bits - 1)
        signed = [-high, high - 1, 0, None, 1, -1, 2, 3, None, 5] * 2
        unsigned = [2 * high - 1, 0, None, 1, 2, 3, 3, 4, 4, None] * 2
        columns[f"i{bits}"] = pa.array(signed, f"int{bits}")
        columns[f"u{bits}"] = pa.array(unsigned, f"uint{bits}")
    columns["f32"] = pa.array([n / 4 if n % 6 else None for n in range(20)], pa.float32())
    columns["f64"] = pa.array([n / 8 if n % 5 else None for n in range(20)], pa.float64())
    big = Decimal("9" * 30 + ".99")
    wide = [big, -big, Decimal("0.01"), None, big] * 4
    columns["d38"] = pa.array(wide, pa.decimal128(38, 2))
    columns["d9"] = pa.array([Decimal(n * 7 % 13) / 4 for n in range(20)], pa.decimal128(9, 2))
    columns["b"] = pa.array([(True, False, None)[n % 3] for n in range(20)])
    return pa.table(columns)


def _floats() -> pa.Table:
    nan, inf = float("nan"), float("inf")
    values = [nan, -0.0, 0.0, inf, -inf, None, 1.5, nan, 0.0, -0.0, -1.5, None, 1.5, inf, 2.5, nan]
    return pa.table({
        "id": pa.array(range(len(values)), pa.int64()),
        "f": pa.array(values, pa.float64()),
        "g": pa.array([v if i % 3 else None for i, v in enumerate(values)], pa.float32()),
        "k": pa.array([n % 3 for n in range(len(values))], pa.int32()),
    })  # fmt: skip


def _left() -> pa.Table:
    keys = [1, 2, 2, 3, None, 5, None, 7, 7, 7, 8, 1, 10, 11, 12, 2]
    words = ["a", "b", "b", None, "e", "f", None, "h", "h", "i", "a", "a", "x", None, "y", "z"]
    return pa.table({
        "k": pa.array(keys, pa.int64()),
        "s": pa.array(words),
        "v": pa.array([n * 10 for n in range(16)], pa.int32()),
    })  # fmt: skip


def _right() -> pa.Table:
    keys = [2, 2, 3, 4, None, 7, 7, 9, None, 1, 12, 13]
    words = ["b", "q", None, "d", "e", "h", "h", "j", None, "a", "y", "w"]
    return pa.table({
        "k": pa.array(keys, pa.int32()),
        "s": pa.array(words),
        "w": pa.array([n * 100 for n in range(12)], pa.int64()),
    })  # fmt: skip


def _third() -> pa.Table:
    return pa.table({
        "k": pa.array([1, 2, 7, 9, 12, 20], pa.int64()),
        "s": pa.array(["a", "b", "h", "j", "zz", "w"]),
    })  # fmt: skip


def _nothing() -> pa.Table:
    return _left().slice(0, 0)


def _lone() -> pa.Table:
    return pa.table({"k": pa.array([7], pa.int64()), "s": ["h"]})


def _skew() -> pa.Table:
    return pa.table({
        "k": pa.array([1 if n % 20 else n // 20 for n in range(600)], pa.int64()),
        "v": pa.array([n % 37 for n in range(600)], pa.int64()),
    })  # fmt: skip


def _moments() -> pa.Table:
    around = [
        dt.datetime(2024, 3, 10, 6, 59, 59, 999_999), dt.datetime(2024, 3, 10, 7, 0),
        dt.datetime(2024, 11, 3, 5, 30), dt.datetime(2024, 11, 3, 6, 30), None,
        dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(1970, 1, 1),
        dt.datetime(2024, 2, 29, 12), dt.datetime(2023, 12, 31, 23, 59, 59, 1),
        dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 31),
        None, dt.datetime(2000, 2, 29), dt.datetime(2024, 3, 10, 7, 0),
    ]  # fmt: skip
    days = [each and each.date() for each in around]
    columns: dict[str, Any] = {"id": pa.array(range(len(around)), pa.int64())}
    for unit in ("s", "ms", "us", "ns"):
        whole = [each and each.replace(microsecond=0) for each in around]
        columns[f"t_{unit}"] = pa.array(around if unit in ("us", "ns") else whole).cast(
            pa.timestamp(unit)
        )
    columns["z_utc"] = columns["t_us"].cast(pa.timestamp("us", "UTC"))
    columns["z_ny"] = columns["z_utc"].cast(pa.timestamp("us", "America/New_York"))
    columns["d"] = pa.array(days, pa.date32())
    columns["tod"] = pa.array([each and each.time() for each in around], pa.time64("us"))
    return pa.table(columns)


def _texts() -> pa.Table:
    words = [
        "apple", "Apple", "APPLE", "", None, "a%b", "a_b", "a\\b", "ab", "ünïcode", "ÜNÏCODE",
        "日本語", "tab\there", "new\nline", "  pad  ", "x" * 300, "1", "12.5", "-3", "2024-02-29",
        "not a number", "a,b,,c", "quo'te", 'dou"ble', None, "apple", "banana", "e\u0301", "é",
        "🎈",
    ]  # fmt: skip
    return pa.table({
        "id": pa.array(range(len(words)), pa.int64()),
        "s": pa.array(words),
        "b": pa.array([word and word[:6].encode() for word in words], pa.binary()),
    })  # fmt: skip


def _nested() -> pa.Table:
    point = pa.struct([("a", pa.int64()), ("b", pa.string())])
    return pa.table({
        "id": pa.array(range(8), pa.int64()),
        "xs": pa.array([[1, 2, 3], [], None, [None], [4, None, 4], [5], [3, 2, 1], [1, 2, 3]],
                       pa.list_(pa.int64())),
        "st": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None, {"a": 1, "b": None},
                        {"a": 1, "b": "x"}, {"a": 2, "b": "z"}, {"a": 2, "b": "z"}, None], point),
        "m": pa.array([[("p", 1)], [], None, [("p", None)], [("q", 2), ("p", 3)], [("r", 4)],
                       [("p", 1)], None], pa.map_(pa.string(), pa.int64())),
        "words": pa.array([["b", "a"], ["c"], [], None, ["a", None], ["a"], ["b", "a"], [""]],
                          pa.list_(pa.string())),
        "sts": pa.array([[{"a": 1, "b": "x"}], [], None, [{"a": 2, "b": None}, None],
                         [{"a": 3, "b": "w"}], [None], [{"a": 1, "b": "x"}], []], pa.list_(point)),
    })  # fmt: skip


def _wide() -> pa.Table:
    columns = {f"c{c:02}": pa.array([r * c % 11 for r in range(30)], pa.int64()) for c in range(80)}
    return pa.table({"id": pa.array(range(30), pa.int64()), **columns})


def _odd_names() -> pa.Table:
    return pa.table({
        "Upper": pa.array([1, 2, None, 4], pa.int64()),
        "with space": ["a", None, "c", "a"],
        "with.dot": pa.array([1.5, 2.5, None, 1.5]),
        "ünï": pa.array([1, 1, 2, None], pa.int32()),
        "select": pa.array([True, False, None, True]),
        'a"quote': pa.array([10, 20, 30, 40], pa.int64()),
        "upper": pa.array([-1, -2, -3, None], pa.int64()),
    })  # fmt: skip


def _points() -> pa.Table:
    chance = random.Random(3)
    ys = [None if n % 8 == 0 else chance.randrange(64) / 4 for n in range(50)]
    return pa.table({
        "g": pa.array([n % 4 for n in range(50)], pa.int32()),
        "x": pa.array([None if n % 9 == 0 else n / 2 for n in range(50)]),
        "y": pa.array(ys),
    })  # fmt: skip


_Make = Callable[[], pa.Table]
_TABLES: dict[str, tuple[_Make, tuple[float, ...], int]] = {
    "emp": (_emp, SEVERAL, 8),
    "dept": (_dept, SINGLE, 100),
    "sales": (_sales, SEVERAL, 64),
    "numbers": (_numbers, SEVERAL, 1),
    "floats": (_floats, SEVERAL, 100),
    "l": (_left, SEVERAL, 100),
    "r": (_right, SEVERAL, 1),
    "third": (_third, (0.5, 0.5), 100),
    "nothing": (_nothing, SINGLE, 100),
    "no_rows": (_nothing, (0.5, 0.5), 100),
    "lone": (_lone, (0.0, 1.0), 100),
    "skew": (_skew, SEVERAL, 50),
    "moments": (_moments, SEVERAL, 100),
    "texts": (_texts, SEVERAL, 100),
    "nested": (_nested, (0.4, 0.0, 0.6), 1),
    "wide": (_wide, SEVERAL, 100),
    "odd_names": (_odd_names, (0.5, 0.5), 100),
    "points": (_points, SEVERAL, 100),
}
