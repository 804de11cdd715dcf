"""The section `functions`: its result, and the entries that are refused."""

import textwrap
from typing import Any

import pytest
from datafusion import SessionContext

from caraway_core.sqltext.expanding import Expander
from tests.core.manifest.conftest import Loads, Refuses, Write

PRICE = "signature: {args: [{name: gross, type: double}], returns: double}"


def test_functions_are_read(loads: Loads, write: Write) -> None:
    write("SELECT x AS v -- $z\nFROM args;\n", "pair.sql")
    manifest = loads(
        """
functions:
  - name: Net_Price
    from: sql
    description: d
    metadata: {team: a}
    volatility: stable
    signature:
      args:
        - {name: gross, type: "decimal(10, 2)", description: with tax}
        - {name: Rate, type: float64, default: 0.19}
        - {name: day, type: "timestamp(us, utc)", required: false}
        - {name: tags, type: list<utf8>, required: false}
        - {name: note, type: text, default: it's}
        - {name: exact, type: bool, default: true}
      returns: double
    body: gross / (1 + rate) + length(note) + cardinality(tags) + (exact AND day > now())::int
  - {name: pair, kind: table, as_tool: false, body_ref: pair.sql,
     signature: {args: [{name: x, type: int}], returns: [{name: v, type: Int64}]}}
  - {name: off, enabled: false, signature: {returns: int}, body: '1'}
datasets:
  - from: file:a.parquet
    name: orders
    acceleration:
      refresh_sql: SELECT id, net_price(amount) AS n FROM orders
      retention_check_enabled: true
      retention_sql: DELETE FROM orders WHERE net_price(amount) < 0
views:
  - {name: v, sql: SELECT * FROM pair(1)}
  - {name: w, sql: SELECT net_price(1) AS n, acceleration: {enabled: true}}
"""
    )
    price, pair = manifest.functions
    assert price.signature == (
        "net_price(gross decimal(10, 2), rate float64 = 0.19, day timestamp(us, utc) = NULL, "
        "tags list<utf8> = NULL, note text = 'it''s', exact bool = TRUE)"
    )
    assert [each.cast.cast_of("x") for each in price.parameters] == [
        "CAST(x AS DECIMAL(10, 2))",
        "CAST(x AS DOUBLE)",
        "arrow_cast(x, 'Timestamp(Microsecond, Some(\"UTC\"))')",
        "arrow_cast(x, 'List(Utf8)')",
        "CAST(x AS VARCHAR)",
        "CAST(x AS BOOLEAN)",
    ]
    assert price.schema["required"] == ["gross"]
    assert price.schema["properties"]["gross"] == {"type": "number", "description": "with tax"}
    assert price.schema["properties"]["rate"] == {"type": "number", "default": 0.19}
    assert price.schema["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}
    assert (price.kind, price.volatility, price.as_tool, price.example) == (
        "scalar", "stable", True, "SELECT net_price($gross)",
    )  # fmt: skip
    assert (pair.kind, pair.volatility, pair.as_tool, pair.example) == (
        "table", "stable", False, "SELECT * FROM pair($x)",
    )  # fmt: skip
    assert "args AS (SELECT CAST(1 AS INT)" in manifest.views[0].sql
    assert "CAST(1 AS DECIMAL(10, 2))" in manifest.datasets[1].path
    acceleration = manifest.datasets[0].acceleration
    assert acceleration is not None
    assert acceleration.retention is not None
    for sql in (acceleration.refresh.sql, acceleration.retention.sql):
        assert sql is not None
        assert "CAST(amount AS DECIMAL(10, 2)) / (1 + CAST(0.19 AS DOUBLE))" in sql


def test_functions_that_are_switched_off_are_not_defined(loads: Loads) -> None:
    text = f"functions: [{{name: f, {PRICE}, body: gross}}]\nruntime: {{functions: {{enabled: "
    assert len(loads(text + "true}}").functions) == 1
    assert loads(text + "false}}").functions == ()


@pytest.mark.parametrize(
    ("item", "told"),
    [
        (f"name: f, {PRICE}", "the function has neither 'body' nor 'body_ref'"),
        (f"name: f, {PRICE}, body: gross, body_ref: a", "mean the same; keep one"),
        (f"name: f, {PRICE}, body_ref: no.sql", "no.sql"),
        (f"name: f, {PRICE}, body: gross, from: 'https://h/x'", "a service can be a tool `from: "),
        (f"name: f, {PRICE}, body: gross, from: python", "no kind of function 'python'"),
        (f"name: f, {PRICE}, body: gross, params: {{a: b}}", "a function in SQL has no params"),
        (f"name: abs, {PRICE}, body: gross", "'abs' is a function of SQL; choose another name"),
        (f"name: Case, {PRICE}, body: gross", "'case' is a function of SQL"),
        (f"name: vector_search, {PRICE}, body: gross", "'vector_search' is a function of SQL"),
        (f"name: sql, {PRICE}, body: gross", "'sql' is the name of a built-in tool"),
        (f"name: a-b, {PRICE}, body: gross", "'a-b' is not a name in SQL"),
        (f"name: f, {PRICE}, body: price", "its body names 'price', which is no parameter: gross"),
        (f"name: f, {PRICE}, body: f(gross)", "calls itself (f -> f)"),
        (f"name: f, {PRICE}, body: rand() * gross, volatility: stable", "the function is volatile"),
        (f"name: f, {PRICE}, body: gross + now(), volatility: immutable", "not more than stable"),
        ("name: f, body: '1'", "the key 'returns' is missing"),
        ("name: f, body: '1', signature: {returns: monney}", "'monney' is not a column type"),
        ("name: f, body: '1', signature: {returns: [{name: a, type: int}]}", "`kind: table`"),
        ("name: f, kind: table, body: SELECT 1, signature: {returns: int}", "a list of columns"),
        ("name: f, kind: tble, body: SELECT 1", "'tble' is not one of: scalar, table"),
        ("name: f, body: '1', signature: {returns: int, args: [{name: a, typ: int}]}", "typ"),
        ("name: t, kind: table, body: SELECT 1", "a table is declared at"),
        ("name: w, kind: table, body: SELECT 1", "taken by a tool"),
        ("name: g, kind: table, body: SELECT 1", "the name 'g' is taken: it is declared at"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(refuses: Refuses, item: str, told: str) -> None:
    text = f"""
        name: app
        functions:
          - {{name: g, kind: table, body: SELECT 1}}
          - {{{item}}}
        datasets: [{{from: file:a.csv, name: t}}]
        tools: [{{from: sql, name: w, sql: SELECT 1}}]
        """
    found = refuses(textwrap.dedent(text))
    assert any(told in line for line in found), found
    assert all(line.startswith("caraway.yaml:5: ") for line in found), found


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{name: a, type: int}, {name: A, type: int}", "the parameter 'a' is declared twice"),
        ("{name: end, type: int}", "'end' is a keyword of SQL; choose another name"),
        ("{name: a, type: int, default: 1}, {name: b, type: int}", "with a default come last"),
        ("{name: a, type: int, default: 1, required: true}", "is not required; remove one"),
        ("{name: a, type: int, default: [1]}", "must be a text, a number, true or false"),
        ("{name: a, type: 'struct<x>'}", "'struct<x>' is not a type; write struct<name: type"),
        ("{name: 1a, type: int}", "'1a' is not a name in SQL"),
        ("{name: a, type: int}, {name: b, type: int}", "does not use the parameter 'b'; remove it"),
    ],
)
def test_parameters_that_cannot_be_used(refuses: Refuses, arguments: str, told: str) -> None:
    (found,) = refuses(
        "name: app\nfunctions:\n"
        f"  - {{name: f, body: a, signature: {{returns: int, args: [{arguments}]}}}}\n"
    )
    assert told in found


def test_calls_in_the_manifest_are_checked(refuses: Refuses) -> None:
    found = refuses(
        f"name: app\nfunctions: [{{name: f, {PRICE}, body: gross}}]\n"
        "views: [{name: v, sql: 'SELECT f()'}]\n"
        "datasets:\n"
        "  - {from: 'file:a', name: t, acceleration: {refresh_sql: 'SELECT f(1, 2) FROM t'}}\n"
    )
    told = "f: its argument `gross` is missing; it is f(gross double)"
    assert f"3: views[0].sql: line 1, column 8: {told}" in found[0]
    assert "datasets[0].acceleration.refresh_sql: line 1, column 8: f: it has too many" in found[1]


def test_functions_as_spicepods_write_them(loads: Loads) -> None:
    manifest = loads(
        """
kind: Spicepod
runtime: {functions: {enabled: true}}
functions:
  - name: double_it
    from: sql
    volatility: immutable
    signature: {args: [{name: x, type: int64}], returns: int64}
    body: 'x * 2'
  - name: emit_pair
    from: sql
    kind: table
    signature:
      args: [{name: x, type: int64}]
      returns: [{name: value, type: int64}, {name: doubled, type: int64}]
    body: |
      SELECT x AS value, x * 2 AS doubled FROM args
      UNION ALL
      SELECT x + 1 AS value, (x + 1) * 2 AS doubled FROM args
  - name: split_full_name
    signature: {args: [{name: full, type: utf8}], returns: 'struct<first:utf8, last:utf8>'}
    body: |
      named_struct(
        'first', split_part(full, ' ', 1),
        'last',  split_part(full, ' ', 2)
      )
  - name: of_user
    kind: table
    signature: {args: [{name: username, type: utf8}]}
    body: |
      SELECT a FROM (VALUES ('/u/pg', 1), ('/u/x', 2)) AS raw(path, a)
      WHERE path = concat('/u/', (SELECT username FROM args))
"""
    )
    expander, context = Expander(manifest.functions), SessionContext()
    expected: dict[str, list[dict[str, Any]]] = {
        "SELECT double_it(21) AS n": [{"n": 42}],
        "SELECT value, doubled FROM emit_pair(4) ORDER BY value": [
            {"value": 4, "doubled": 8},
            {"value": 5, "doubled": 10},
        ],
        "SELECT split_full_name('A B')['last'] AS n": [{"n": "B"}],
        "SELECT * FROM of_user('pg')": [{"a": 1}],
    }
    for sql, rows in expected.items():
        assert context.sql(expander.expanded(sql).sql).to_pylist() == rows
