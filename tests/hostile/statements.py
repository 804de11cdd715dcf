"""The table of hostile statements, by family. `t` is a dataset of 1,000 rows.

It has every function of DataFusion 55 whose output can be much larger than its input. `test_table`
compares it with `information_schema`, and fails if an upgrade adds a function without an
assessment.
"""

from collections.abc import Mapping

_BIG = 2_000_000_000


def chain(term: str, operator: str, count: int) -> str:
    return operator.join([term] * count)


def nested(before: str, inside: str, after: str, depth: int) -> str:
    return before * depth + inside + after * depth


def doubling(count: int, read: str) -> str:
    """Return CTEs that each read the previous one twice; `read` names it `{0}`."""
    ctes = ", ".join(f"c{i} AS ({read.format(f'c{i - 1}')})" for i in range(1, count))
    return f"WITH c0 AS (SELECT id FROM t), {ctes} SELECT count(*) FROM c{count - 1}"


GROWING: Mapping[str, str] = {
    "repeat": f"SELECT length(repeat('x', {_BIG}))",
    "repeat of a column": "SELECT length(repeat(name, 100000000)) FROM t",
    "repeat of repeat": "SELECT length(repeat(repeat(name, 10000), 10000)) FROM t",
    "lpad": f"SELECT length(lpad('x', {_BIG}, 'y'))",
    "rpad": f"SELECT length(rpad('x', {_BIG}, 'y'))",
    "lpad of a column": "SELECT length(lpad(name, 500000000, 'y')) FROM t",
    "range": "SELECT range(1, 1000000000)",
    "generate_series": "SELECT generate_series(1, 1000000000)",
    "range of a column": "SELECT sum(array_length(range(id, 100000000))) FROM t",
    "range of dates": "SELECT generate_series(TIMESTAMP '0001-01-01', TIMESTAMP '9999-01-01', "
    "INTERVAL '1 second')",
    "unnest of range": "SELECT unnest(range(1, 1000000000))",
    "unnest sorted": "SELECT x FROM (SELECT unnest(range(1, 1000000000)) AS x) ORDER BY x DESC "
    "LIMIT 1",
    "unnest next to unnest": "SELECT a, unnest(range(1, 100000)) FROM (SELECT unnest(range(1, "
    "100000)) AS a) ORDER BY 1 DESC LIMIT 1",
    "table function range": "SELECT count(DISTINCT value) FROM range(1, 100000000000)",
    "table function sorted": "SELECT value FROM generate_series(1, 100000000000) ORDER BY value "
    "% 7, value LIMIT 3",
    "array_repeat": f"SELECT array_length(array_repeat(1, {_BIG}))",
    "array_repeat of arrays": "SELECT array_repeat(array_repeat(array_repeat(1, 2000), 2000), 500)",
    "array_resize": f"SELECT array_length(array_resize([1], {_BIG}, 1))",
    "array_concat": f"SELECT array_concat({', '.join(['range(1, 10000000)'] * 50)})",
    "array_append": "SELECT array_append(range(1, 300000000), 1)",
    "array_prepend": "SELECT array_prepend(1, range(1, 300000000))",
    "array_union": "SELECT array_union(range(1, 100000000), range(2, 100000001))",
    "array_intersect": "SELECT array_intersect(range(1, 100000000), range(2, 100000001))",
    "array_except": "SELECT array_except(range(1, 100000000), range(2, 100000001))",
    "array_distinct": "SELECT array_distinct(range(1, 300000000))",
    "array_sort": "SELECT array_sort(range(1, 300000000), 'DESC')",
    "array_reverse": "SELECT array_reverse(range(1, 300000000))",
    "array_replace_all": "SELECT array_replace_all(array_repeat(1, 300000000), 1, 2)",
    "array_remove_all": "SELECT array_remove_all(range(1, 300000000), 5)",
    "array_positions": "SELECT array_positions(array_repeat(1, 300000000), 1)",
    "array_slice": "SELECT array_slice(range(1, 300000000), 2, 299999999)",
    "array_to_string": "SELECT length(array_to_string(range(1, 200000000), '-------'))",
    "array_join of a column": "SELECT length(array_join(range(1, id * 1000000), ',')) FROM t",
    "arrays_zip": "SELECT arrays_zip(range(1, 100000000), range(1, 100000000))",
    "array_scale": "SELECT array_scale(range(1, 300000000), 2.0)",
    "array_normalize": "SELECT array_normalize(range(1, 300000000))",
    "flatten": "SELECT flatten(array_repeat(range(1, 100000), 10000))",
    "string_to_array": "SELECT array_length(string_to_array(repeat('a,', 300000000), ','))",
    "make_array": f"SELECT make_array({', '.join(['repeat(name, 1000000)'] * 100)}) FROM t",
    "struct": f"SELECT struct({', '.join(['repeat(name, 1000000)'] * 100)}) FROM t",
    "named_struct": "SELECT named_struct('a', repeat(name, 10000000), 'b', repeat(name, 10000000)) "
    "FROM t",
    "map": "SELECT map(range(1, 50000000), range(1, 50000000))",
    "map_entries": "SELECT map_entries(map(range(1, 50000000), range(1, 50000000)))",
    "concat": f"SELECT length(concat({', '.join(['repeat(name, 1000000)'] * 200)})) FROM t",
    "concat_ws": f"SELECT concat_ws(repeat('-', 100000000), {', '.join(['name'] * 50)}) FROM t",
    "replace": "SELECT length(replace(repeat('x', 100000), 'x', repeat('y', 100000)))",
    "replace of nothing": "SELECT length(replace(repeat(name, 100000), '', repeat('y', 1000))) "
    "FROM t",
    "regexp_replace": "SELECT length(regexp_replace(repeat('x', 100000), 'x', repeat('y', 100000), "
    "'g'))",
    "translate": "SELECT length(translate(repeat(name, 50000000), 'abc', 'xyz')) FROM t",
    "overlay": "SELECT length(overlay(name PLACING repeat('y', 300000000) FROM 1)) FROM t",
    "encode": "SELECT length(encode(repeat('x', 1500000000), 'hex'))",
    "decode": "SELECT length(decode(repeat('00', 1000000000), 'hex'))",
    "to_char": "SELECT to_char(TIMESTAMP '2024-01-01', repeat('%Y-%m-%d', 20000000)) FROM t",
    "upper": "SELECT length(upper(repeat(name, 100000000))) FROM t",
    "initcap": "SELECT length(initcap(repeat(name, 100000000))) FROM t",
    "reverse": "SELECT length(reverse(repeat(name, 100000000))) FROM t",
    "levenshtein": "SELECT levenshtein(repeat('ab', 1000000), repeat('ba', 1000000))",
    "split_part": "SELECT split_part(repeat('a,', 1000000000), ',', 900000000)",
    "regexp_match": "SELECT regexp_match(repeat('a', 500000000), '(a*)*b')",
    "regexp_count": "SELECT regexp_count(repeat('a', 1000000000), 'a')",
    "sha512": "SELECT sha512(repeat(name, 100000000)) FROM t",
    "string_agg": "SELECT length(string_agg(repeat(name, 1000000), ',')) FROM t",
    "array_agg": "SELECT array_length(array_agg(repeat(name, 1000000))) FROM t",
    "array_agg of a product": "SELECT array_agg(a.id) FROM t a, t b, t c",
    "string_agg of a window": "SELECT max(length(x)) FROM (SELECT string_agg(repeat(name, 10000), "
    "',') OVER (ORDER BY id) AS x FROM t)",
    "array_agg of a window": "SELECT max(array_length(x)) FROM (SELECT array_agg(a.id) OVER (ORDER "
    "BY a.id, b.id) AS x FROM t a, t b)",
    "distinct of a product": "SELECT count(DISTINCT a.id * 1000000 + b.id * 1000 + c.id) FROM t a, "
    "t b, t c",
    "median of a product": "SELECT median(a.id + b.id + c.id) FROM t a, t b, t c",
    "percentile of a product": "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a.id + b.id + "
    "c.id) FROM t a, t b, t c",
    "lag": "SELECT max(length(x)) FROM (SELECT lag(repeat(name, 10000000)) OVER (ORDER BY id) AS x "
    "FROM t)",
    "min of long texts": "SELECT min(repeat(name, 10000000)) FROM t GROUP BY id",
}

PRODUCTS: Mapping[str, str] = {
    "cross join": "SELECT count(*) FROM t a, t b, t c, t d",
    "cross join sorted": "SELECT a.id FROM t a, t b, t c ORDER BY a.id * b.id % 7, c.id LIMIT 5",
    "cross join grouped": "SELECT a.id, b.id, c.id, count(*) FROM t a, t b, t c GROUP BY 1, 2, 3 "
    "ORDER BY 4 DESC LIMIT 1",
    "inequality join": "SELECT count(*) FROM t a JOIN t b ON a.id <> b.id JOIN t c ON c.id <> a.id "
    "JOIN t d ON d.id <> a.id",
    "range join": "SELECT sum(a.id) FROM t a JOIN t b ON a.id < b.id JOIN t c ON b.id < c.id JOIN "
    "t d ON c.id < d.id",
    "join of one key": "SELECT count(*) FROM t a JOIN t b ON a.one = b.one JOIN t c ON a.one = "
    "c.one JOIN t d ON a.one = d.one",
    "full join of one key": "SELECT count(*) FROM t a FULL JOIN t b ON a.one = b.one FULL JOIN t c "
    "ON a.one = c.one FULL JOIN t d ON a.one = d.one",
    "not exists": "SELECT count(*) FROM t a, t b, t c WHERE NOT EXISTS (SELECT 1 FROM t d WHERE "
    "d.id > a.id + b.id + c.id)",
    "cross join answered": "SELECT a.*, b.*, c.* FROM t a, t b, t c",
    "window over a product": "SELECT sum(x) FROM (SELECT row_number() OVER (PARTITION BY a.id % 3 "
    "ORDER BY b.id, c.id) AS x FROM t a, t b, t c)",
    "window frame": "SELECT sum(x) FROM (SELECT sum(a.id) OVER (ORDER BY a.id, b.id ROWS BETWEEN "
    "500000 PRECEDING AND 500000 FOLLOWING) AS x FROM t a, t b)",
    "window frame of extremes": "SELECT sum(x) FROM (SELECT nth_value(a.id, 400000) OVER (ORDER BY "
    "a.id, b.id ROWS BETWEEN 500000 PRECEDING AND CURRENT ROW) AS x FROM t a, t b)",
    "union of products": chain("SELECT count(*) FROM t a, t b, t c, t d", " UNION ALL ", 50),
    "recursive endless": "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 0 FROM r) "
    "SELECT count(*) FROM r",
    "recursive doubling": "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT r.n FROM r, (VALUES "
    "(1), (2)) v(a)) SELECT count(*) FROM r",
    "recursive growing text": "WITH RECURSIVE r AS (SELECT 'x' AS s UNION ALL SELECT s || s FROM "
    "r) SELECT max(length(s)) FROM r",
    "recursive product": "WITH RECURSIVE r AS (SELECT id FROM t UNION ALL SELECT r.id FROM r, t) "
    "SELECT count(*) FROM r",
    "recursive distinct": "WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n + 1 FROM r) SELECT "
    "count(*) FROM r",
    "cube": "SELECT count(*) FROM t a, t b GROUP BY CUBE (a.id, a.one, a.name, b.id, b.one, "
    "b.name, a.id + b.id, a.id * b.id)",
    "large cube": "SELECT count(*) FROM t GROUP BY CUBE ("
    + ", ".join(f"id + {i}" for i in range(20)) + ")",
    "grouping sets": "SELECT count(*) FROM t a, t b GROUP BY GROUPING SETS ("
    + ", ".join(f"(a.id + {i}, b.id)" for i in range(60)) + ")",
    "rollups": "SELECT count(*) FROM t GROUP BY "
    + ", ".join(f"ROLLUP ({', '.join(f'id + {i * 9 + j}' for j in range(9))})" for i in range(4)),
}  # fmt: skip

LARGE: Mapping[str, str] = {
    "OR": "SELECT id FROM t WHERE " + " OR ".join(f"id = {i}" for i in range(10_000)),
    "4,000 OR": "SELECT id FROM t WHERE " + " OR ".join(f"id = {i}" for i in range(4_000)),
    "AND": "SELECT id FROM t WHERE " + " AND ".join(f"id <> {i}" for i in range(50_000)),
    "plus": f"SELECT {chain('1', '+', 50_000)}",
    "2,000 plus": f"SELECT {chain('id', ' + ', 2_000)} FROM t",
    "5,000 concatenations": f"SELECT {chain('name', ' || ', 5_000)} FROM t",
    "casts": f"SELECT id{'::bigint::int' * 5_000} FROM t",
    "UNION ALL": chain("SELECT 1", " UNION ALL ", 5_000),
    "EXCEPT": chain("SELECT id FROM t", " EXCEPT ", 2_000),
    "INTERSECT": chain("SELECT id FROM t", " INTERSECT ", 2_000),
    "parentheses": f"SELECT {nested('(', '1', ')', 100_000)}",
    "brackets": f"SELECT {nested('[', '1', ']', 100_000)}",
    "calls": f"SELECT {nested('abs(', 'id', ')', 20_000)} FROM t",
    "CASE": f"SELECT {nested('CASE WHEN id = 1 THEN 1 ELSE ', '2', ' END', 5_000)} FROM t",
    "subqueries": f"SELECT * FROM {nested('(SELECT * FROM ', 't', ')', 2_000)}",
    "NOT": f"SELECT {'NOT ' * 50_000}true",
    "minus": f"SELECT {'- ' * 50_000}1",
    "IN": f"SELECT id FROM t WHERE id IN ({', '.join(map(str, range(400_000)))})",
    "IN of texts": "SELECT id FROM t WHERE name IN ("
    + ", ".join(f"'{i:08}'" for i in range(100_000)) + ")",
    "VALUES": f"SELECT count(*) FROM (VALUES {chain('(1, 2, 3)', ', ', 150_000)}) AS v(a, b, c)",
    "columns": f"SELECT {', '.join(f'id + {i} AS c{i}' for i in range(60_000))} FROM t",
    "wide rows": f"SELECT {', '.join(f'repeat(name, {1000 + i}) AS c{i}' for i in range(2_000))} "
    "FROM t",
    "aggregates": f"SELECT {', '.join(f'sum(id + {i})' for i in range(4_000))} FROM t",
    "windows": "SELECT "
    + ", ".join(f"sum(id) OVER (ORDER BY id + {i}) AS c{i}" for i in range(1_000)) + " FROM t",
    "joins": "SELECT count(*) FROM t t0 "
    + " ".join(f"JOIN t t{i} ON t{i}.id = t{i - 1}.id" for i in range(1, 1_000)),
    "cross of many": f"SELECT count(*) FROM {', '.join(f't t{i}' for i in range(2_000))}",
    "doubling CTEs": doubling(25, "SELECT * FROM {0} UNION ALL SELECT * FROM {0}"),
    "doubling joins": doubling(25, "SELECT a.id FROM {0} a JOIN {0} b ON a.id = b.id"),
    "doubling expressions": "SELECT * FROM "
    + nested("(SELECT a + a AS a FROM ", "(SELECT id AS a FROM t)", ")", 18) + " WHERE a > 7",
    "literal": f"SELECT length('{'x' * 3_900_000}')",
    "literal many times": f"WITH c AS (SELECT '{'x' * 900_000}' AS a) SELECT "
    + ", ".join(f"(SELECT max(a || 'x{i}') FROM c)" for i in range(100)),
    "long alias": f"SELECT id AS {'a' * 1_000_000} FROM t",
    "statements": ";".join(["SELECT 1"] * 100_000),
    "unclosed texts": "SELECT " + " ".join(f"$a{i}$" for i in range(200_000)),
    "unclosed comments": "SELECT " + "/* " * 1_000_000,
    "regular expression": f"SELECT count(*) FROM t WHERE name ~ '{nested('(', 'a', '{1,50})', 6)}'",
    "large regular expression": "SELECT count(*) FROM t WHERE regexp_like(name, '"
    + "|".join(f"a{i}.*b[[:alpha:]]{{1,99}}" for i in range(2_000)) + "')",
    "regular expression of rows": "SELECT count(*) FROM t WHERE regexp_like(name, repeat(name, "
    "500) || '(.*a){1,99}')",
    "LIKE": "SELECT count(*) FROM t WHERE repeat(name, 100000) LIKE '" + "%a" * 2_000 + "b'",
    "decimals": "SELECT " + chain("CAST(id AS DECIMAL(38, 10))", " * ", 400) + " FROM t",
    "powers": "SELECT sum(power(10, id)), factorial(20), sum(CAST(power(10, 30) AS "
    "DECIMAL(38, 0))) FROM t",
    "nested types": f"SELECT {nested('{a: ', 'id', '}', 40)} FROM t",
    "lists of lists": f"SELECT {nested('array_repeat(', '1', ', 9)', 12)}",
    "EXPLAIN": "EXPLAIN VERBOSE SELECT id FROM t WHERE "
    + " OR ".join(f"id = {i}" for i in range(1_500)),
    "EXPLAIN ANALYZE": "EXPLAIN ANALYZE SELECT count(*) FROM t a, t b, t c, t d",
}  # fmt: skip

SEARCHES: Mapping[str, str] = {
    "10,000 searches": "SELECT 1 FROM " + chain("text_search(t, 'a')", ", ", 10_000),
    "nested searches": f"SELECT 1 FROM {'rrf(' * 10_000}",
    "nested rerank": nested(
        "SELECT * FROM rerank(input => TABLE(", "SELECT name FROM t", "), query => 'a')", 40
    ),
    "unclosed search": f"SELECT 1 FROM text_search(t, {chain('1', ', ', 100_000)}",
    "searches in texts": "SELECT " + chain("'FROM text_search(t'", ", ", 4_000) + " FROM t",
    "search in comments": "SELECT 1 "
    + "/* FROM text_search(t */ " * 10_000
    + "FROM text_search(t, 'a')",
    "search for a megabyte": f"SELECT 1 FROM text_search(t, '{'a ' * 500_000}')",
    "search of found rows": "SELECT count(*) FROM text_search(t, 'a') a, text_search(t, 'a') b, "
    "text_search(t, 'a') c, text_search(t, 'a') d WHERE a.id + b.id + c.id + d.id < 0",
    "search filtered by a product": "SELECT id FROM text_search(t, 'name') WHERE id IN (SELECT "
    "a.id + b.id + c.id FROM t a, t b, t c)",
    "search filtered by repeat": "SELECT id FROM text_search(t, 'name') WHERE "
    "length(repeat(name, 100000000)) > 1",
    "search with 900 ORs": "SELECT id FROM text_search(t, 'name') WHERE "
    + chain("substr(name, 1, id) = 'x'", " OR ", 900),
    "doubling searches": "WITH c0 AS (SELECT id FROM text_search(t, 'a'))"
    + "".join(f", c{i} AS (SELECT a.id FROM c{i - 1} a, c{i - 1} b)" for i in range(1, 20))
    + " SELECT count(*) FROM c19",
    "rerank of a product": "SELECT 1 FROM rerank(input => TABLE(SELECT a.name FROM t a, t b, t c, "
    "t d), query => 'a')",
    "lateral search": "SELECT 1 FROM t, LATERAL text_search(t, t.name)",
    "correlated search": "SELECT (SELECT max(s.id) FROM text_search(t, 'name') s WHERE s.name = "
    "t.name) FROM t",
}
"""Searches: reading their calls, sending conditions, and what reads the rows that were found."""
STATEMENTS: Mapping[str, str] = {**GROWING, **PRODUCTS, **LARGE, **SEARCHES}
assert len(STATEMENTS) == len(GROWING) + len(PRODUCTS) + len(LARGE) + len(SEARCHES)

DELAYING = frozenset({"join of one key", "full join of one key"})
"""Statements that may delay another client until they are stopped.

They look like joins of equal keys, so they run concurrently with others. With equal keys everywhere
they occupy every thread of the engine, like a cross join. This should be empty.
"""

QUICK = (
    "repeat", "repeat of a column", "range", "lpad of a column", "array_resize", "string_agg",
    "array_agg of a product", "cross join", "inequality join", "recursive growing text", "OR",
    "2,000 plus", "doubling CTEs", "literal", "unclosed texts", "regular expression",
    "10,000 searches", "search filtered by repeat",
)  # fmt: skip
"""One statement of each family."""
LIKE_OTHERS = frozenset({"repeat of a column", "array_agg of a product"})
"""Those of them that end an engine as another one does, and are left out of `make test`."""
