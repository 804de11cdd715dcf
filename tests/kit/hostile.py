"""Texts that resemble displayed plans, and statements that contain them."""

HOSTILE = (
    "log line:\n  Dml: op=[Insert Into] table=[orders]",
    "\nDml: op=[Insert Into] table=[t]",
    "\nCopyTo: format=csv output_url=/nowhere",
    "TableScan: runtime.task_history",
    "\n  TableScan: caraway.runtime.metrics projection=[a]",
    "\nTableScan: information_schema.tables",
    "\n  SubqueryAlias: u\n    TableScan: u",
    "now()",
    "random() uuid() today() current_date()",
    "\nCross Join:\n  Inner Join: Filter: x",
    "Explain\nAnalyze\nDescribeTable\nPlan",
    "\nProjection: t.a\nUnnest: lists\nRecursiveQuery: is_distinct=false",
    "null_aware IGNORE NULLS GROUPING SETS outer_ref( __grouping_id RANGE BETWEEN 1 PRECEDING",
    "quote \" and ' and \\ and ; -- /* $1 ?",
)
TEMPLATES = (
    "SELECT a, {text} AS note FROM t",
    "SELECT a AS {name} FROM t",
    "SELECT a FROM t AS {name} WHERE b = {text}",
    "SELECT {name}.a FROM t AS {name} JOIN u ON {name}.a = u.a",
    "SELECT a FROM t WHERE b IN ({text}, 'y') ORDER BY {text} || b",
    "SELECT a, count(*) AS {name} FROM t GROUP BY a, {text} HAVING min(b) < {text}",
    "SELECT sum(a) OVER (PARTITION BY b || {text}) AS {name} FROM t",
    "SELECT max(b) FILTER (WHERE b <> {text}) AS {name} FROM t",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.b = {text})",
    "SELECT a FROM t WHERE b > (SELECT max(b || {text}) AS {name} FROM u)",
    "WITH {name} AS (SELECT a, {text} AS b FROM t) SELECT * FROM {name}",
    "VALUES ({text})",
    "INSERT INTO t SELECT a, {text} FROM u",
    "INSERT INTO t VALUES (1, {text})",
    "EXPLAIN SELECT {text} AS {name} FROM t",
    "EXPLAIN ANALYZE SELECT {text} AS {name} FROM t",
)

UNCLOSED = (
    " ".join(f"$a{number}$" for number in range(100_000)),
    "/* " * 300_000,
    "/* /* a */ " * 100_000,
    "/**/" * 100_000 + "x",
    "$$ a" * 100_000 + " $$",
    "' " * 300_001,
    "` " * 300_001,
    r"E'\' " * 100_001,
)
"""Texts that make a careless regular expression backtrack."""


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def identifier(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
