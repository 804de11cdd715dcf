"""Tables of numbers that tasks read in shares."""

import pyarrow as pa

SCHEMA = pa.schema([("a", pa.int64()), ("g", pa.int64()), ("s", pa.string())])
NAMES = pa.table({"g": [0, 1, 2, 9], "name": ["zero", "one", "two", "nine"]})


def numbers(start: int, count: int) -> pa.Table:
    values = range(start, start + count)
    columns = [values, [v % 5 for v in values], [f"text {v}" for v in values]]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


ROWS = [
    "SELECT a, g, s FROM {t}",
    "SELECT s FROM {t} WHERE a > 150 AND g = 2",
    "SELECT a FROM {t} WHERE a < 0 OR a > 22990",
    "SELECT a + 1 AS x, upper(s) AS u FROM {t} WHERE s LIKE '%7'",
    "SELECT t.a, n.name FROM {t} t JOIN $names n ON t.g = n.g",
    "SELECT t.a, n.name FROM {t} t LEFT JOIN $names n ON t.g = n.g AND n.name <> 'one'",
    "SELECT t.a FROM {t} t WHERE t.g IN (SELECT g FROM $names)",
    "SELECT a FROM {t} WHERE g = 1 UNION ALL SELECT a FROM {t} WHERE g = 2",
    "SELECT a FROM {t} UNION ALL SELECT g FROM {t}",
    "SELECT a, n.name FROM {t} CROSS JOIN $names n WHERE a % 97 = 0",
]
