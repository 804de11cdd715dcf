"""The section `tools`: its result, and the entries that are refused with their line."""

from pathlib import Path

import pytest

from caraway_core import manifest
from caraway_core.errors import ManifestError
from caraway_core.manifest.values.declared_tools import DeclaredTool
from caraway_core.sqltext.expanding import Expander

HEAD = "version: v1\nkind: Caraway\nname: t\n"


def load(folder: Path, text: str) -> tuple[DeclaredTool, ...]:
    path = folder / "caraway.yaml"
    path.write_text(HEAD + text)
    return manifest.load(path).tools


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        load(folder, text)
    return [f"{each.line}: {each.message}" for each in caught.value.problems]


def test_every_kind_is_read(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        """tools:
  - from: sql
    name: orders_of
    description: Orders
    groups: shop
    sql: SELECT * FROM orders WHERE customer = :customer LIMIT $limit
    parameters:
      customer: {type: integer, description: Its id, minimum: 1}
      limit: {type: integer, default: 10}
  - from: https://api.test/weather/{city}
    name: weather
    parameters: {city: {type: string}, unit: {type: string, enum: [c, f], required: false}}
    params: {headers: 'X-Key: ${env:KEY}', timeout: 5s}
  - {from: http, name: plain, params: {url: 'http://api.test/x', method: post}}
  - {from: 'mcp:https://mcp.test/mcp', name: remote, params: {mcp_auth_token: '${env:T}'}}
  - {from: websearch, name: web, params: {engine: perplexity, perplexity_auth_token: k}}
  - {from: 'mcp:npx', name: started, params: {mcp_args: '-y @x/server'}, env: {A: b}}
  - {from: 'builtin:list_datasets', name: list_datasets, params: {table_allowlist: a}}
""",
    )
    orders, weather, plain, remote, web, started, listing = found
    assert web.kind == "websearch"
    assert (orders.kind, orders.groups) == ("sql", ("shop",))
    assert orders.parameters == {
        "type": "object",
        "properties": {
            "customer": {"type": "integer", "description": "Its id", "minimum": 1},
            "limit": {"type": "integer", "default": 10},
        },
        "required": ["customer"],
        "additionalProperties": False,
    }
    assert (weather.kind, weather.target) == ("http", "https://api.test/weather/{city}")
    assert weather.parameters["required"] == ["city"]
    assert (plain.kind, plain.target) == ("http", "http://api.test/x")
    assert (remote.kind, remote.target) == ("mcp", "https://mcp.test/mcp")
    assert (started.kind, started.target, started.env) == ("mcp", "npx", {"A": "b"})
    assert (listing.kind, listing.target) == ("builtin", "list_datasets")
    assert "${env:T}" not in repr(remote)


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ("from: sqll, name: a", "no kind of tool 'sqll'; did you mean 'sql'?"),
        ("from: sql, name: a", "the key 'sql' with the statement is missing"),
        ("from: sql, name: a, sql: 'SELECT :x'", "placeholder 'x', which 'parameters' lacks"),
        (
            "from: sql, name: a, sql: SELECT 1, parameters: {x: {type: string}}",
            "the statement has no placeholder '$x'",
        ),
        (
            "from: sql, name: a, sql: 'SELECT :x', parameters: {x: {type: text}}",
            "'text' is not one of: string, integer",
        ),
        (
            "from: sql, name: a, sql: 'SELECT :x', parameters: {x: {type: string, descr: y}}",
            "unknown key 'descr'; did you mean 'description'?",
        ),
        ("from: sql, name: sql, sql: SELECT 1", "'sql' is the name of a built-in tool"),
        ("from: sql, name: tool_search, sql: SELECT 1", "is the name of a built-in tool"),
        ("from: sql, name: 'a b', sql: SELECT 1", "'a b' is not a tool name"),
        ("from: sql, name: a, sql: SELECT 1, params: {x: y}", "no sql param 'x'"),
        ("from: 'sql:orders', name: a, sql: SELECT 1", "write `from: sql`"),
        ("from: http, name: a", "write `from: https://host/path`"),
        ("from: 'https:///x', name: a", "write `from: https://host/path`"),
        ("from: 'ftp://h/x', name: a", "no kind of tool 'ftp'"),
        ("from: 'https://h/{id}', name: a", "the address has '{id}', which 'parameters' lacks"),
        ("from: 'https://h/', name: a, params: {method: LOOK}", "'LOOK' is not one of: DELETE"),
        ("from: 'https://h/', name: a, params: {timeout: 0}", "must be more than 0"),
        ("from: 'https://h/', name: a, params: {tmeout: 5s}", "did you mean 'timeout'?"),
        ("from: 'https://h/', name: a, env: {A: b}", "only an MCP server that is started"),
        ("from: mcp, name: a", "write `from: mcp:https://host/mcp`"),
        ("from: 'mcp:https://h', name: a, params: {mcp_args: x}", "reached by HTTP has none"),
        ("from: 'mcp:npx', name: a, params: {mcp_headers: 'a: b'}", "that is started has none"),
        ("from: 'mcp:npx', name: a, parameters: {x: {type: string}}", "parameters of its own"),
        ("from: 'mcp:npx', name: a, as_sql: true", "only a tool `from: sql` can be called in SQL"),
        ("from: sql, name: a-b, sql: SELECT 1, as_sql: true", "'a-b' is not a name in SQL"),
        ("from: sql, name: abs, sql: SELECT 1, as_sql: true", "'abs' is a function of SQL"),
        ("from: sql, name: a, sql: SHOW TABLES, as_sql: true", "its body must be a query"),
        (
            "from: sql, name: a, sql: 'SELECT :x', parameters: {x: {type: object}}, as_sql: true",
            "an object cannot be an argument in SQL",
        ),
        ("from: 'builtin:sqll', name: sqll", "no built-in tool 'sqll'; did you mean 'sql'?"),
        ("from: 'builtin:websearch', name: websearch", "write `from: websearch`, with the params"),
        (
            "from: 'websearch:bing', name: w, params: {endpoint: 'http://x'}",
            "write `from: websearch`, and the engine in the param",
        ),
        ("from: websearch, name: w", "the param 'perplexity_auth_token' is missing"),
        (
            "from: websearch, name: w, params: {engine: bing, perplexity_auth_token: k}",
            "'bing' is not one of: perplexity",
        ),
        ("from: websearch, name: w, params: {endpoint: nowhere}", "must be an address, such as"),
        ("from: websearch, name: sql, params: {perplexity_auth_token: k}", "is the name of a"),
        ("from: 'builtin:sql', name: query", "write `name: sql`"),
        ("from: 'builtin:sql', name: sql, params: {table_allowlist: a}", "has no params"),
        ("from: sql, name: a, sql: SELECT 1, grops: [x]", "unknown key 'grops'"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, item: str, told: str) -> None:
    (found,) = problems(tmp_path, f"tools:\n  - {{{item}}}\n")
    assert found.startswith("5: ")
    assert told in found


def test_a_name_is_declared_once(tmp_path: Path) -> None:
    text = "tools:\n  - {from: sql, name: a, sql: SELECT 1}\n  - {from: 'mcp:x', name: a}\n"
    assert problems(tmp_path, text) == ["6: the tool 'a' is declared twice"]


def test_tools_are_functions_of_sql(tmp_path: Path) -> None:
    path = tmp_path / "caraway.yaml"
    path.write_text(
        f"{HEAD}tools:\n  - from: sql\n    name: By_State\n    description: d\n    as_sql: true\n"
        "    sql: SELECT id FROM orders WHERE state = :state AND id < $most AND id IN (:ids)\n"
        "    parameters:\n      state: {type: string, required: false}\n"
        "      most: {type: integer, default: 9}\n      ids: {type: array}\n"
    )
    functions = manifest.load(path).functions
    (function,) = functions
    assert (function.kind, function.as_tool, function.description) == ("table", False, "d")
    told = "by_state(state text = NULL, most bigint = 9, ids array)"
    assert function.signature == told
    sql = Expander(functions).expanded("SELECT * FROM by_state('a', ids => [1, 2])").sql
    assert sql == (
        "SELECT * FROM (SELECT id FROM orders WHERE state = CAST('a' AS VARCHAR) AND "
        'id < CAST(9 AS BIGINT) AND id IN (([1, 2]))) AS "by_state"'
    )


def test_a_tool_and_a_function_have_different_names(tmp_path: Path) -> None:
    text = (
        "functions:\n  - {name: a, kind: table, body: SELECT 1}\n"
        "tools:\n  - {from: sql, name: a, sql: SELECT 1, as_sql: true}\n"
    )
    assert any("the name 'a' is taken" in each for each in problems(tmp_path, text))
