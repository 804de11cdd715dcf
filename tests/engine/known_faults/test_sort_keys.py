"""Sort keys name the columns of the output, also where a remedy wraps them.

The table `floats` consists of Parquet files, so that sort keys of first rows are wrapped.
"""

import pyarrow as pa
import pytest

from caraway_engine.known_faults.sort_keys import may_be_floats
from tests.differential.asking import Runner
from tests.engine.known_faults.fault_rows import rows, rows_of
from tests.engine.known_faults.memory import Asked

_FINITE = "FROM floats WHERE id IN (1, 2, 6, 7)"
NAN = float("nan")
# With these ids, f is 1, 2, -0.0 and 0.0, and i is infinity, 2, 5 and 6.
FIRST: dict[str, tuple[tuple[object, ...], ...]] = {
    f"SELECT 1 - f AS f {_FINITE} ORDER BY f LIMIT 1": ((-1.0,),),
    f'SELECT 1 - f AS "f" {_FINITE} ORDER BY "f" LIMIT 1': ((-1.0,),),
    f"SELECT 1 - f AS f {_FINITE} ORDER BY 1 LIMIT 1": ((-1.0,),),
    f"SELECT 1 - f AS f {_FINITE} ORDER BY f DESC, 1 LIMIT 2": ((1.0,), (1.0,)),
    f"SELECT f AS id, id AS f {_FINITE} ORDER BY id DESC LIMIT 1": ((2.0, 2),),
    f"SELECT f AS id, id AS f {_FINITE} ORDER BY f LIMIT 1": ((1.0, 1),),
    f"SELECT f AS i, i AS f {_FINITE} ORDER BY f, i LIMIT 2": ((2.0, 2.0), (-0.0, 5.0)),
    f"SELECT f AS i, i AS f {_FINITE} ORDER BY 2, 1 LIMIT 2": ((2.0, 2.0), (-0.0, 5.0)),
    f"SELECT 1 - f, id AS f {_FINITE} ORDER BY 1 LIMIT 1": ((-1.0, 2),),
    f"SELECT x.f, 1 - x.f AS g {_FINITE.replace('floats', 'floats x')} ORDER BY 2 LIMIT 1": (
        (2.0, -1.0),
    ),
    f"SELECT g + 0 AS f, max(f) AS g {_FINITE} GROUP BY g ORDER BY f LIMIT 1": ((1, 2.0),),
    f"SELECT max(f) AS g, g AS f {_FINITE} GROUP BY g ORDER BY g, f LIMIT 1": ((0.0, 3),),
    f"WITH c AS (SELECT 1 - f AS f {_FINITE}) SELECT 1 - f AS f FROM c ORDER BY f DESC LIMIT 1": (
        (2.0,),
    ),
    f"SELECT f FROM (SELECT 1 - f AS f {_FINITE} ORDER BY f LIMIT 1) AS o": ((-1.0,),),
    f"SELECT 1 - f AS f {_FINITE} UNION ALL SELECT f FROM floats WHERE id = 2 ORDER BY f LIMIT 1": (
        (-1.0,),
    ),
    # The statistics of a file do not cover NaN, so the columns have to be hidden in these, too.
    "SELECT * FROM floats ORDER BY 3 DESC, 1 LIMIT 2": ((0, 1, NAN, 1.0), (4, 2, NAN, 4.0)),
    "SELECT floats.* FROM floats ORDER BY 3 DESC, 1 LIMIT 2": ((0, 1, NAN, 1.0), (4, 2, NAN, 4.0)),
    "SELECT f FROM floats UNION ALL SELECT f FROM floats ORDER BY f DESC LIMIT 4": ((NAN,),) * 4,
    "SELECT f FROM floats UNION ALL SELECT f FROM floats ORDER BY 1 DESC LIMIT 4": ((NAN,),) * 4,
    "SELECT id, f AS g FROM floats ORDER BY g DESC, id LIMIT 2": ((0, NAN), (4, NAN)),
}


@pytest.mark.parametrize("sql", FIRST)
def test_the_first_rows_are_those_by_the_column_of_the_output(sql: str, runner: Runner) -> None:
    answer = runner.outcome(sql)

    assert isinstance(answer, pa.Table), answer
    assert rows(answer) == rows_of(FIRST[sql])


# A month is longer than 30 days by its parts, and as long by its seconds.
LENGTHS = {
    "SELECT k, s AS k2 FROM spans ORDER BY k2, k": [1, 2, 3],
    "SELECT k, s AS d, d AS s FROM spans ORDER BY d, k": [1, 2, 3],
    "SELECT k, d AS s, s AS d FROM spans ORDER BY d, k": [1, 2, 3],
    "SELECT k, s FROM spans ORDER BY 2, 1": [1, 2, 3],
    "SELECT * FROM spans ORDER BY 2, 1": [1, 2, 3],
    "SELECT k, s FROM spans UNION ALL SELECT k, s FROM spans WHERE k > 9 ORDER BY s, k": [1, 2, 3],
    "SELECT k, s FROM spans UNION ALL SELECT k, s FROM spans WHERE k > 9 ORDER BY 2, 1": [1, 2, 3],
}
_SPANS = (
    "WITH spans AS (SELECT * FROM (VALUES "
    "(3, INTERVAL '1 month', INTERVAL '1 day'), (1, INTERVAL '28 days', INTERVAL '3 days'), "
    "(2, INTERVAL '29 days', INTERVAL '2 days')) AS v(k, s, d)) "
)


@pytest.mark.parametrize("sql", LENGTHS)
def test_intervals_are_sorted_by_the_column_of_the_output(sql: str, asked: Asked) -> None:
    found = asked.in_order(_SPANS + sql)

    assert [row[0] for row in found] == LENGTHS[sql]
    assert "date_part" in asked.text(_SPANS + sql)


def test_types_of_sort_keys_are_those_of_the_output(asked: Asked) -> None:
    """A sum of two BIGINT is guarded where an alias has that type, and a column another."""
    sql = "SELECT id, x AS c FROM big ORDER BY c + 1, id"

    with pytest.raises(Exception, match="9223372036854775808"):
        asked.mended(sql)


_COLUMNS = pa.schema([("id", pa.int64()), ("F", pa.float64()), ("l", pa.list_(pa.float32()))])


@pytest.mark.parametrize(
    ("sql", "may_be"),
    [
        ("select id from t", False),
        ("select id from t order by id", False),
        ("SELECT id FROM t ORDER  BY ID desc NULLS first, 1 LIMIT 5 OFFSET 2;", False),
        ("select id, f from t order by id, f", True),
        ("select id, f from t order by 2", True),
        ("select id, f, l from t order by l", True),
        ("select id from t order by other", True),
        ("select id from t order by 9", True),
        ("select id from t order by id + 1", True),
        ('select id from t order by "id"', True),
        ("select id from (select id from t order by f limit 1) order by id", True),
        ("select id, rank() over (order by f) from t order by id", True),
        ("select id from t order by id limit $1", True),
    ],
)
def test_only_one_select_that_sorts_by_other_columns_needs_no_parser(
    sql: str, may_be: bool
) -> None:
    assert may_be_floats(sql, _COLUMNS) is may_be
